{{ config(materialized='incremental', unique_key='landed', on_schema_change='append_new_columns') }}
select landed, count(*) as landings{% if var('with_tonnes', false) %}, sum(tonnes) as tonnes{% endif %}
from {{ ref('checked_landings') }}
{% if is_incremental() %}
where landed >= (select max(landed) from {{ this }})
{% endif %}
group by landed
