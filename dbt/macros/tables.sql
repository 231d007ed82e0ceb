{#
  dbt-spark on tables of Pennon. A project takes these macros for its own with one line of dbt_project.yml:
  macro-paths: ["macros", "dbt_packages/pennon/macros"]. See docs/dbt.md.
#}

{% macro dbt_spark_validate_get_file_format(raw_file_format) %}
  {#- What the model states: dbt-spark says parquet where a model says nothing -#}
  {%- set stated = config.get('file_format', 'lance') if 'file_format' in model.get('unrendered_config', {}) else 'lance' -%}
  {%- if stated != 'lance' -%}
    {% do exceptions.raise_compiler_error(
      "Cannot build " ~ this ~ ": its file_format is " ~ stated
      ~ ", and the catalog stores Lance. Leave file_format out, or write lance.") %}
  {%- endif -%}
  {% do return('lance') %}
{% endmacro %}


{% macro spark__file_format_clause() %}
  using {{ dbt_spark_validate_get_file_format(none) }}
{%- endmacro %}


{% macro spark__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if language != 'sql' -%}
    {% do exceptions.raise_compiler_error(
      "Cannot build " ~ relation ~ ": dbt-spark runs Python models on Databricks alone. Write the model in SQL.") %}
  {%- elif temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    {%- set contract -%}
      {%- if config.get('contract').enforced %}{{ get_assert_columns_equivalent(compiled_code) }}{% endif -%}
    {%- endset -%}
    {%- if config.get('contract').enforced -%}{%- set compiled_code = get_select_subquery(compiled_code) -%}{%- endif -%}
    {#- Readers have the table of before until its commit is made, either way -#}
    {%- if is_of_this_shape(relation, compiled_code) -%}
      insert into {{ relation }} replace where true
    {%- else -%}
      create or replace table {{ relation }} {{ contract }} {{ table_clauses() }} as
    {%- endif %}
    {{ compiled_code }}
  {%- endif -%}
{%- endmacro %}


{% macro table_clauses() %}
  {{ file_format_clause() }}
  {{ options_clause() }}
  {{ tblproperties_clause() }}
  {{ partition_cols(label="partitioned by") }}
  {{ clustered_cols(label="clustered by") }}
  {{ location_clause() }}
  {{ comment_clause() }}
{% endmacro %}


{% macro is_of_this_shape(relation, query) %}
  {#- Whether a query's columns and the configured partitions are those of the table: then its history, its tags
      and its properties stay. CREATE OR REPLACE begins a new history -#}
  {%- if load_cached_relation(relation) is none -%}{% do return(false) %}{%- endif -%}
  {%- set there = described(relation) -%}
  {%- set columns = [] -%}
  {%- for row in run_query("describe query " ~ query) -%}{%- do columns.append([row[0], row[1]]) -%}{%- endfor -%}
  {%- set partitions = config.get('partition_by') or [] -%}
  {%- set partitions = [partitions] if partitions is string else partitions -%}
  {%- set clusters = config.get('clustered_by') or [] -%}
  {%- set clusters = [clusters] if clusters is string else clusters -%}
  {%- if clusters and config.get('buckets') -%}
    {#- CLUSTERED BY is a partition field for Spark -#}
    {%- set partitions = partitions + ['bucket(' ~ config.get('buckets') ~ ',' ~ clusters | join(',') ~ ')'] -%}
  {%- endif -%}
  {%- set stated = partitions | join(',') | replace(' ', '') | replace('`', '') | lower -%}
  {% do return(columns == there.columns and stated == there.partitions | join(',') | replace(' ', '') | lower) %}
{% endmacro %}


{% macro described(relation) %}
  {#- Columns, comments and partitions of a table, as DESCRIBE says them -#}
  {%- set found = {'columns': [], 'comments': {}, 'partitions': [], 'comment': ''} -%}
  {%- set at = namespace(part='columns') -%}
  {%- for row in run_query("describe table extended " ~ relation) -%}
    {%- if row[0].startswith('# ') -%}
      {%- set at.part = row[0] -%}
    {%- elif at.part == 'columns' and row[0] -%}
      {%- do found.columns.append([row[0], row[1]]) -%}
      {%- do found.comments.update({row[0]: row[2] or ''}) -%}
    {%- elif at.part == '# Partitioning' and row[0].startswith('Part ') -%}
      {%- do found.partitions.append(row[1]) -%}
    {%- elif at.part == '# Detailed Table Information' and row[0] == 'Comment' -%}
      {%- do found.update({'comment': row[1]}) -%}
    {%- endif -%}
  {%- endfor -%}
  {% do return(found) %}
{% endmacro %}


{% materialization table, adapter='spark', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {{ run_hooks(pre_hooks) }}
  {%- call statement('main') -%}
    {{ create_table_as(False, target_relation, compiled_code, model['language']) }}
  {%- endcall -%}
  {% do set_properties(target_relation) %}
  {% do apply_grants(target_relation, config.get('grants'), should_revoke=False) %}
  {% do persist_docs(target_relation, model) %}
  {% do persist_constraints(target_relation, model) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{% macro set_properties(relation) %}
  {#- Those that the model states and the table has otherwise -#}
  {%- set there, changed = {}, [] -%}
  {%- set stated = config.get('tblproperties') or {} -%}
  {%- if stated -%}
    {%- for row in run_query("show tblproperties " ~ relation) -%}{%- do there.update({row[0]: row[1]}) -%}{%- endfor -%}
  {%- endif -%}
  {%- for name in stated if stated[name] | string != there.get(name) -%}
    {%- do changed.append(sql_text(name) ~ " = " ~ sql_text(stated[name] | string)) -%}
  {%- endfor -%}
  {%- if changed -%}
    {% do run_query("alter table " ~ relation ~ " set tblproperties (" ~ changed | join(", ") ~ ")") %}
  {%- endif -%}
{% endmacro %}


{% macro spark__create_view_as(relation, sql) -%}
  {% do exceptions.raise_compiler_error(
    "Cannot build the view " ~ relation ~ ": the catalog keeps tables alone."
    ~ " Say +materialized: table, incremental or ephemeral in dbt_project.yml or in the model.") %}
{%- endmacro %}


{% macro spark__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {%- set stated = [] -%}
  {%- for column in seed_columns(model, agate_table) -%}
    {%- do stated.append("cast(null as " ~ column[1] ~ ") as " ~ column[0]) -%}
  {%- endfor -%}
  {%- if is_of_this_shape(this, "select " ~ stated | join(", ")) -%}
    {#- dbt loads no rows of a file that has none -#}
    {%- if not agate_table.rows -%}{% do run_query("truncate table " ~ this) %}{%- endif -%}
    {{ return("") }}
  {%- endif -%}
  {{ return(create_csv_table(model, agate_table)) }}
{% endmacro %}


{% macro spark__create_csv_table(model, agate_table) %}
  {%- set columns = [] -%}
  {%- for column in seed_columns(model, agate_table) -%}{%- do columns.append(column | join(" ")) -%}{%- endfor -%}
  {%- set sql = "create or replace table " ~ this ~ " (" ~ columns | join(", ") ~ ")" ~ table_clauses() -%}
  {% do run_query(sql) %}
  {{ return(sql) }}
{% endmacro %}


{% macro seed_columns(model, agate_table) %}
  {%- set types = model['config'].get('column_types', {}) -%}
  {%- set columns = [] -%}
  {%- for name in agate_table.column_names -%}
    {%- do columns.append([adapter.quote(name), types.get(name, adapter.convert_type(agate_table, loop.index0))]) -%}
  {%- endfor -%}
  {% do return(columns) %}
{% endmacro %}


{% macro spark__load_csv_rows(model, agate_table) %}
  {#- The first commit takes the place of the rows that were there -#}
  {%- set columns = seed_columns(model, agate_table) -%}
  {%- set statements = [] -%}
  {%- for chunk in agate_table.rows | batch(get_batch_size()) -%}
    {%- set bindings, rows = [], [] -%}
    {%- for row in chunk -%}
      {%- do bindings.extend(row) -%}
      {%- set values = [] -%}
      {%- for column in columns -%}{%- do values.append("cast(" ~ get_binding_char() ~ " as " ~ column[1] ~ ")") -%}{%- endfor -%}
      {%- do rows.append("(" ~ values | join(", ") ~ ")") -%}
    {%- endfor -%}
    {%- set into = "insert into " ~ this ~ (" replace where true" if loop.first else "") -%}
    {%- do statements.append(into ~ " values " ~ rows | join(", ")) -%}
    {%- do adapter.add_query(statements[-1], bindings=bindings, abridge_sql_log=True) -%}
  {%- endfor -%}
  {{ return(statements[0]) }}
{% endmacro %}


{% macro spark__persist_docs(relation, model, for_relation, for_columns) -%}
  {#- What is there already makes no commit -#}
  {%- set there = described(relation) -%}
  {%- if for_relation and config.persist_relation_docs() and (model.description or '') != there.comment -%}
    {% do run_query("comment on table " ~ relation ~ " is " ~ sql_text(model.description)) %}
  {%- endif -%}
  {%- if for_columns and config.persist_column_docs() and model.columns -%}
    {%- set names = there.comments.keys() | list -%}
    {%- set changed = [] -%}
    {%- for name, column in validate_doc_columns(relation, model.columns, names).items()
        if column['description'] != there.comments.get(name) -%}
      {%- do changed.append(adapter.quote(name) ~ " comment " ~ sql_text(column['description'])) -%}
    {%- endfor -%}
    {%- if changed -%}
      {% do run_query("alter table " ~ relation ~ " alter column " ~ changed | join(", ")) %}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}


{% macro sql_text(text) -%}
  '{{ (text or '') | replace('\\', '\\\\') | replace("'", "\\'") }}'
{%- endmacro %}


{% macro spark__get_columns_in_relation(relation) %}
  {#- dbt-spark's own gives the rows of DESCRIBE, in which snapshots look for names -#}
  {% do return(adapter.get_columns_in_relation(relation)) %}
{% endmacro %}


{% macro spark__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {%- if add_columns -%}
    {%- set added = [] -%}
    {%- for column in add_columns -%}
      {%- do added.append(adapter.quote(column.name) ~ " " ~ column.data_type) -%}
    {%- endfor -%}
    {% do run_query("alter table " ~ relation ~ " add columns (" ~ added | join(", ") ~ ")") %}
  {%- endif -%}
  {%- if remove_columns -%}
    {%- set removed = [] -%}
    {%- for column in remove_columns -%}{%- do removed.append(adapter.quote(column.name)) -%}{%- endfor -%}
    {% do run_query("alter table " ~ relation ~ " drop columns (" ~ removed | join(", ") ~ ")") %}
  {%- endif -%}
{% endmacro %}


{% macro spark__persist_constraints(relation, model) %}
  {#- A contract's names and types are checked; Spark adds NOT NULL and CHECK to no table of a query -#}
  {%- set stated = model.get('constraints', []) | map(attribute='type') | list -%}
  {%- for column in model.columns.values() -%}
    {%- do stated.extend(column.get('constraints', []) | map(attribute='type')) -%}
  {%- endfor -%}
  {%- if stated and config.get('contract').enforced -%}
    {% do exceptions.warn("The constraints of " ~ relation ~ " (" ~ stated | unique | join(", ")
      ~ ") are left out: Spark adds none to a table that a query makes. Write them as data_tests.") %}
  {%- endif -%}
{% endmacro %}


{% macro spark__apply_grants(relation, grant_config, should_revoke=True) %}
  {%- if grant_config -%}
    {% do exceptions.warn("The grants of " ~ relation ~ " are left out: Spark has no GRANT for a catalog of its own.") %}
  {%- endif -%}
{% endmacro %}


{% macro spark__list_relations_without_caching(relation) %}
  {#- Without columns: dbt asks each table for those, and gets their types as SQL writes them, and statistics -#}
  {%- set listed = [] -%}
  {%- for row in run_query("show tables in " ~ relation.schema) if not row[2] -%}
    {%- do listed.append((row[0], row[1], row[2], 'Type: MANAGED\nProvider: lance\n')) -%}
  {%- endfor -%}
  {% do return(listed) %}
{% endmacro %}
