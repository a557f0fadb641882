{% macro change_ships() %}
  {% do run_query("begin; update " ~ ref('ships') ~ " set flag = 'se' where ship = 'Bea';"
    ~ " delete from " ~ ref('ships') ~ " where ship = 'Cora'; commit;") %}
{% endmacro %}
