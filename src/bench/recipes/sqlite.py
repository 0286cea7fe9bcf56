# title: SQLite
# counts: rows
# module: sqlite3
# wanted: 0.60

import sqlite3

# A row of the table, its entry in the index, and its share of the other table.
n = max(BYTES // 72, 1000) // 4 * 4 + 1
n += n % 7919 == 0 or n % 104729 == 0
base = sqlite3.connect(":memory:")
base.execute("pragma temp_store=memory")
base.execute("create table a(id integer primary key, k int, v int)")
base.executemany("insert into a values(?,?,?)", ((i, i * 7919 % n, i * 31 % 1000) for i in range(n)))
base.execute("create index ak on a(k)")
base.execute("create table b(k int, w int)")
base.executemany("insert into b values(?,?)", ((i * 104729 % n, i) for i in range(n // 4)))


def work(number):
    count, total = base.execute("select count(*), sum(v * w) from b join a on a.k = b.k").fetchone()
    base.execute("update a set v = v + 1 where k % 5 = 0")
    (values,) = base.execute("select sum(v) from a").fetchone()
    # Both keys go through all numbers below n, which is prime to their factors.
    return count == n // 4, (total, values)


run(work, n)
