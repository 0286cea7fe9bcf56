-- SQLite with its database in memory: half a million rows, an index, joins, aggregates, an update and a delete.
CREATE TABLE item(id INTEGER PRIMARY KEY, kind INTEGER, value REAL, name TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500000)
INSERT INTO item SELECT i, (i * 7919) % 1000, (i * 104729) % 1000003 / 7.0, printf('item-%d-%d-some-longer-text-to-fill-pages', i, (i * 31) % 977) FROM n;
CREATE INDEX by_kind ON item(kind, value);
CREATE INDEX by_name ON item(name);
SELECT count(*), sum(kind), round(sum(value), 3), max(name), min(name) FROM item;
SELECT kind, count(*), round(avg(value), 6) FROM item GROUP BY kind ORDER BY 3 DESC LIMIT 5;
UPDATE item SET value = value + 1 WHERE kind BETWEEN 100 AND 200;
DELETE FROM item WHERE id % 10 = 3;
SELECT count(*), round(sum(value), 3) FROM item;
SELECT a.kind, count(*) FROM item a JOIN item b ON b.id = a.id * 2 WHERE a.kind < 5 GROUP BY a.kind;
SELECT name FROM item ORDER BY name DESC LIMIT 3 OFFSET 1000;
PRAGMA integrity_check;
