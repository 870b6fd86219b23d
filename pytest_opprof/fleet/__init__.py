"""Jobs of many ranks: a trace per rank becomes tables, and tables answer for the job.

`ingest` maps each rank's trace to Parquet on any `concurrent.futures.Executor`; `summary` and `difference`
read the tables with DuckDB. All of it needs the extra ``fleet``.
"""
