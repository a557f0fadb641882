{{ config(materialized='view') }}
with landed as (
    select landing, ship, landed, coalesce(tonnes, 0) as tonnes, quay
    from {{ ref('landings') }}
)
select landed.*, ships.flag
from landed
join {{ ref('ships') }} as ships on ships.ship = landed.ship
