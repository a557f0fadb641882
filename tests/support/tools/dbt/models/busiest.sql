{{ config(materialized='view') }}
select ship, landed from {{ ref('checked_landings') }}
where landed in (select landed from {{ ref('inner_days') }})
