{{ config(materialized='ephemeral') }}
select landed from {{ ref('busy_days') }} where landings > 1
