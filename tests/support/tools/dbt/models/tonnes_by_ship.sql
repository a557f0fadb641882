{{ config(materialized='table', indexes=[{'columns': ['ship'], 'unique': true}, {'columns': ['flag', 'ship']}]) }}
select
    ship,
    flag,
    count(*) as landings,
    sum(tonnes) as tonnes,
    round(avg(tonnes), 2) as mean,
    max(landed) as last_landed,
    {{ dbt.datediff("min(landed)", "max(landed)", "day") }} as days
from {{ ref('checked_landings') }}
group by ship, flag
