{{ config(materialized='incremental', unique_key='id') }}
select id, customer, placed from {{ ref('orders') }}
{% if is_incremental() %} where placed > (select max(placed) from {{ this }}) - 3 {% endif %}
