{# How rows of a table that is there change: incremental models and snapshots. #}

{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) %}
  {%- set strategies = ['append', 'merge', 'insert_overwrite', 'microbatch'] -%}
  {%- if raw_strategy not in strategies -%}
    {% do exceptions.raise_compiler_error(
      "Cannot build " ~ this ~ ": its incremental_strategy is " ~ raw_strategy
      ~ ". Say one of these: " ~ strategies | join(", ") ~ ".") %}
  {%- endif -%}
  {% do return(raw_strategy) %}
{% endmacro %}


{% materialization incremental, adapter='spark', supported_languages=['sql', 'python'] %}
  {%- if should_full_refresh() -%}
    {{ return(materialization_table_spark()) }}
  {%- endif -%}
  {{ return(dbt.materialization_incremental_spark()) }}
{% endmaterialization %}


{% macro get_insert_overwrite_sql(source_relation, target_relation, existing_relation) %}
  {%- set columns = adapter.get_columns_in_relation(target_relation) | map(attribute='quoted') | join(', ') -%}
  {%- if config.get('incremental_strategy') == 'microbatch' -%}
    {#- A batch replaces its own rows alone, also where a partition is longer than it. The times are written as
        dbt writes them for the rows that it reads: in any time zone both are the same days of a DATE -#}
    {%- set time = config.get('event_time') -%}
    insert into {{ target_relation }}
    replace where {{ time }} >= '{{ model.batch.event_time_start }}' and {{ time }} < '{{ model.batch.event_time_end }}'
  {%- elif not config.get('partition_by') -%}
    {#- Not by the session's mode of overwriting, which another model may have set -#}
    insert into {{ target_relation }} replace where true
  {%- else -%}
    {#- Which partitions: those of the rows, whatever the transforms are -#}
    insert overwrite {{ target_relation }}
  {%- endif %}
  select {{ columns }} from {{ source_relation }}
{% endmacro %}


{% macro spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) %}
  {{ dbt.spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) }}
  {%- set action = config.get('not_matched_by_source_action') -%}
  {%- if action %}
      when not matched by source
        {%- if config.get('not_matched_by_source_condition') %} and {{ config.get('not_matched_by_source_condition') }}{% endif %}
        then {{ action }}
  {%- endif %}
{% endmacro %}


{% materialization snapshot, adapter='spark' %}
  {%- do dbt_spark_validate_get_file_format(config.get('file_format') or 'lance') -%}
  {{ return(dbt.materialization_snapshot_default()) }}
{% endmaterialization %}


{% macro spark__post_snapshot(staging_relation) %}
  {% do run_query("drop view if exists " ~ staging_relation) %}
{% endmacro %}


{% macro spark__get_or_create_relation(database, schema, identifier, type) %}
  {%- set there = adapter.get_relation(database=none, schema=schema, identifier=identifier) -%}
  {%- set new = api.Relation.create(schema=schema, identifier=identifier, type=type) -%}
  {% do return([there is not none, there or new]) %}
{% endmacro %}


{% materialization clone, adapter='spark' %}
  {% do exceptions.raise_compiler_error(
    "Cannot clone " ~ this ~ ": the format has no clones. Copy the rows by a model, or read the other target by dbt build --defer.") %}
{% endmaterialization %}
