{{ config(materialized='table', contract={'enforced': true}) }}
select distinct quay, ship as only_ship, 1.5::numeric(4, 1) as depth
from {{ ref('checked_landings') }}
where flag = 'dk'
