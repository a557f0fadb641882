{{ config(materialized='table', indexes=[{'columns': ['customer'], 'unique': true}]) }}
select customer, total, rank() over (order by total desc) as place from {{ ref('customers') }}
