{% snapshot kept %}
{{ config(target_schema='analytics', unique_key='id', strategy='check', check_cols=['amount']) }}
select * from {{ ref('orders') }}
{% endsnapshot %}
