# title: Polars
# counts: rows
# pip: polars==2.1.0
# module: polars
# wanted: 0.60

os.environ["POLARS_MAX_THREADS"] = THREADS
import polars as pl

# A row of the table, its share of the other one, and what a join or a sort holds besides.
n = max(BYTES // 100, 1000)
n += n % 7919 == 0 or n % 104729 == 0
i = pl.int_range(n, eager=True)
a = pl.DataFrame({"k": i * 7919 % n, "g": i % 1000, "v": i * 31 % n})
b = pl.DataFrame({"k": i[: n // 2] * 104729 % n, "h": i[: n // 2] % 77})
del i


def work(number):
    joined = a.join(b, on="k").group_by("h").agg(pl.len(), pl.sum("v")).sort("h")
    grouped = a.group_by("g").agg(pl.sum("v")).select(pl.sum("v"))
    ranked = a.sort("v", "k").select((pl.col("v") * pl.int_range(pl.len()) % 1000003).sum())
    # Both keys go through all numbers below n, which is prime to their factors.
    right = joined["len"].sum() == n // 2 and grouped.item() == a["v"].sum()
    return right, (joined.rows()[:2], grouped.item(), ranked.item())


run(work, n)
