-- A page of the list of runs is found in the index alone, in the order in which the list shows runs. The rows of the pages before it are
-- not read.

DROP INDEX runs_by_age;
CREATE INDEX runs_newest_first ON runs (created DESC, id DESC);

INSERT INTO schema_version (version, migration) VALUES (11, '0011_runs_newest_first');
