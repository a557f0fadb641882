{# Replaces a table by dropping and making it in one transaction, without a swap of names. #}
{% materialization table, adapter='postgres' %}
  {% set target = this.incorporate(type='table') %}
  {% set there = load_cached_relation(this) %}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% if there is not none %}
    {% call statement('drop') %}drop {{ there.type }} {{ there }}{% endcall %}
  {% endif %}
  {% call statement('main') %}{{ get_create_table_as_sql(False, target, sql) }}{% endcall %}
  {% do create_indexes(target) %}
  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {% do adapter.commit() %}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}
