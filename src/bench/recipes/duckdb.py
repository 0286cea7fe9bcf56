# title: DuckDB
# counts: rows
# pip: duckdb==2.0.1
# module: duckdb
# wanted: 0.60

import duckdb

n = max(BYTES // 150, 1000)
n += n % 7919 == 0 or n % 104729 == 0
base = duckdb.connect()
base.execute(f"set threads={os.environ.get('OMP_NUM_THREADS', '2')}")
# It would shrink its buffers to what it sees of the machine.
base.execute(f"set memory_limit='{8 * BYTES}B'")
base.execute("set temp_directory=''")


def work(number):
    base.execute(f"create or replace table a as select (i*7919)%{n} k, i%1000 g, (i*31)%{n} v from range({n}) t(i)")
    base.execute(f"create or replace table b as select (i*104729)%{n} k, i%77 h from range({n // 2}) t(i)")
    joined = base.execute("select h, count(*), sum(v) from a join b using (k) group by h order by h").fetchall()
    grouped = base.execute("select sum(x) from (select g, sum(v) x from a group by g)").fetchall()
    ranked = base.execute("select sum(v * r % 1000003) from (select v, row_number() over (order by v, k) r from a)").fetchall()
    # Both keys go through all numbers below n, which is prime to their factors.
    return sum(row[1] for row in joined) == n // 2, str(joined[:2] + grouped + ranked)


run(work, n)
