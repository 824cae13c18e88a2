//! The catalogue of deliberate bugs: the place of each, and the suite that detects it.
//!
//! A suite is `sim` or `cuts`, with a colon and the seed to begin at if the first one that shows the
//! bug comes late, or a program with tests, with a colon and the filter of its tests if one test is
//! enough. A program is named as its file, without the hash: `faults`, `drumlin_table`; the unit tests
//! of the engine are `drumlin`.

/// A place that can be broken on purpose, `drumlin_base::bug!("name")` in the sources.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// The value of `DRUMLIN_BUG` that switches it on.
    pub name: &'static str,
    /// The file or directory of `crates` that has it, without `src` and `.rs`.
    pub module: &'static str,
    /// The suite that detects it.
    pub suite: &'static str,
}

const fn bug(name: &'static str, module: &'static str, suite: &'static str) -> Bug {
    Bug {
        name,
        module,
        suite,
    }
}

/// Every such place.
#[rustfmt::skip]
pub const BUGS: &[Bug] = &[
    bug("accept-without-pause", "fs/net/acceptor", "net:accepting::"),
    bug("account-never-balanced", "engine/background/manual_queue", "drumlin:manual_queue::"),
    bug("accounts-not-asked", "base", "drumlin_base:budget::"),
    bug("added-options-unsynced", "engine/options/file", "faults:families::options_of_new"),
    bug("appended-batch-uncounted", "engine/write/batch", "drumlin:batch::"),
    bug("archived-name-unsynced", "engine/wal/archive", "faults:changes::changes_survive"),
    bug("backup-checksums-uncompared", "engine/maintenance/backup/check", "uses:backups::damage_is_found"),
    bug("backup-discarded-files-first", "engine/maintenance/backup/create", "faults:backups::a_backup_is_whole_or_not_there_when_the_disk_errs"),
    bug("backup-files-unsynced", "engine/maintenance/backup/transfer", "faults:backups::a_backup_is_whole_or_not_there_when_the_machine"),
    bug("backup-garbage-of-damaged", "engine/maintenance/backup/remove", "uses:backups::files_that_a_damaged"),
    bug("backup-names-unsynced", "engine/maintenance/backup/create", "faults:backups::a_backup_is_whole_or_not_there_when_the_machine"),
    bug("backup-names-without-size", "engine/maintenance/backup/layout", "drumlin:backup::layout::"),
    bug("backup-removal-unsynced", "engine/maintenance/backup/remove", "faults:backups::backups_are_removed"),
    bug("backup-takes-what-was-left", "engine/maintenance/backup/plan", "uses:backups::what_an_interrupted_run"),
    bug("batch-count-unchecked", "engine/write/batch_view", "drumlin:batch::"),
    bug("batches-see-what-came-later", "table/searchable", "table_formats:searchable::batches_at"),
    bug("bits-a-place-off-at-the-end", "succinct", "drumlin_succinct:bits::"),
    bug("blob-file-of-another-family", "engine/caches/blob_cache", "drumlin:blob_cache::"),
    bug("blob-files-for-rocksdb-6-6", "engine/options/vintage", "drumlin:vintage::"),
    bug("blob-of-another-key", "table/blob", "blobs:references_that_lie"),
    bug("blob-references-taken-in", "engine/maintenance/ingest", "faults:copies::an_external_table_that_refers"),
    bug("bloom-line-half", "table/filter", "filters"),
    bug("buckets-taken-for-restarts", "table/block", "drumlin_table:block::"),
    bug("cached-blocks-not-asked", "base", "drumlin_base:budget::"),
    bug("change-not-logged", "engine/write/commit", "uses:changes::every_kind"),
    bug("checkpoint-names-unsynced", "engine/maintenance/checkpoint", "faults:copies::a_checkpoint_is_whole"),
    bug("checkpoint-only-links", "engine/maintenance/checkpoint", "uses:checkpoints::a_copy_on_another"),
    bug("checkpoint-without-wal", "engine/maintenance/checkpoint", "sim"),
    bug("checksum-too-new", "engine/options/settings", "peer_databases"),
    bug("committed-section-let-go", "engine/version/section_wals", "drumlin:section_wals::"),
    bug("compaction-reorders-operands", "engine/compaction", "cuts"),
    bug("compactions-expire-early", "engine/family/ttl", "uses:ttl::reads_show"),
    bug("compactions-watched-as-flushes", "engine/files/disk_watch", "drumlin:disk_watch::"),
    bug("cost-of-the-disk-untold", "engine/watch/explain", "faults:slow_disk::"),
    bug("counted-in-spite-of-newer-deletions", "engine/watch/counting", "uses:counting::counts_hold"),
    bug("covered-keys-counted", "engine/version/key_walk", "uses:counting::counts_hold"),
    bug("covered-operands-merged", "engine/read", "drumlin:read::tests::walks"),
    bug("current-dir-unsynced", "engine/version", "cuts"),
    bug("current-unsynced", "engine/version", "sim"),
    bug("cut-record-taken", "table/plain", "drumlin_table:plain::record::"),
    bug("cut-transaction-kept", "rdb/aof/commands", "drumlin_rdb:aof::commands::"),
    bug("damaged-blob-not-read-again", "table/blob", "blobs:a_read_that_came_back_wrong"),
    bug("damaged-page-taken", "table/searchable", "table:searchable::"),
    bug("dead-spans-uncut", "memtable/dead_spans", "uses:dead_spans::walks_past"),
    bug("dead-spans-uncut-behind", "memtable/dead_spans", "drumlin_memtable:dead_spans::"),
    bug("dead-walks-unaccounted", "engine/family/column_family", "uses:queue::"),
    bug("deferred-count-of-one-digit", "resp/reply", "drumlin_resp:reply::"),
    bug("deletions-counted-as-keys", "engine/watch/properties", "smoke"),
    bug("deletions-take-the-reserve", "engine/files/space", "drumlin:space::"),
    bug("disk-share-unbounded", "engine/files/disk_watch", "drumlin:disk_watch::"),
    bug("doc-key-text-unescaped", "doc/keystring", "doc:order::keys_sort"),
    bug("dropped-tables-uncover", "engine/compaction/within", "uses:set_options::what_a_dropped_table"),
    bug("dropped-walks-kept", "engine/maintenance/families", "drumlin:read::iterator_tests::walks_that"),
    bug("dump-crc-unread", "rdb/dump", "drumlin_rdb:dump::"),
    bug("empty-wal-is-no-gap", "engine/wal/replay", "faults:corruption::damage_around"),
    bug("encryption-unseen", "engine/db/foreign", "uses:refused::"),
    bug("end-of-a-range-covered", "engine/iter/range_tombstone", "drumlin:range_tombstone::"),
    bug("equal-bound-counted-below", "engine/read/resident", "drumlin:read::resident::layout::"),
    bug("errors-untold", "engine/store/watch", "sim:100"),
    bug("evicted-blob-file-stays-open", "engine/caches/blob_cache", "drumlin:blob_cache::"),
    bug("expired-locks-go-to-nobody", "engine/txn/lock_table", "uses:expiry::the_locks"),
    bug("expired-transactions-commit", "engine/txn/expiry", "uses:expiry::"),
    bug("explained-get-skips-l0", "engine/watch/explain", "smoke:properties_and"),
    bug("export-without-memtables", "engine/maintenance/export", "uses:family_copies::a_family_taken"),
    bug("failed-group-forgotten", "engine/write/published", "sim:30"),
    bug("failed-job-leaves-health", "engine/background/run", "sim"),
    bug("failed-sync-acknowledged", "engine/write", "sim"),
    bug("family-begins-a-wal-late", "engine/maintenance/families", "sim"),
    bug("family-name-unescaped", "engine/options/file", "drumlin:options::file::"),
    bug("file-free-by-one-description", "engine/version", "drumlin:version::left_files::"),
    bug("file-number-reused", "engine/version", "cuts"),
    bug("file-with-two-names-reused", "fs", "posix"),
    bug("files-removed-under-readers", "engine/version", "sim"),
    bug("filter-false-negative", "table/filter", "sim"),
    bug("filter-first-layer-unasked", "memtable", "drumlin_memtable:filter::"),
    bug("filters-count-what-is-not-durable", "engine/background/compaction_job", "uses:compaction_filters::"),
    bug("first-output-untold", "engine/background/compaction_job", "uses:events::events_tell"),
    bug("flush-before-wal-sync", "engine/store/install", "cuts"),
    bug("flush-forgets-snapshots", "engine/compaction/flush", "sim"),
    bug("flush-loses-a-range-tombstone", "engine/compaction/flush", "sim"),
    bug("follow-is-silent-on-failures", "cli/follow", "follow:follow_says"),
    bug("follower-keeps-what-was-flushed", "engine/store/state", "faults:follower::a_follower_equals"),
    bug("follower-mixes-wals", "engine/store/state", "faults:follower::a_follower_equals"),
    bug("follower-passes-over-turns", "engine/version/follow", "followers:a_follower_beside"),
    bug("followers-told-of-success", "engine/write/commit", "sim"),
    bug("forked-child-reads", "engine/db/handle", "fork"),
    bug("gap-in-changes-passed-over", "engine/db/changes", "uses:changes::writes_without"),
    bug("garbage-after-repair-miscounted", "engine/maintenance/repair_blobs", "uses:blobs::repair"),
    bug("garbage-of-dropped-tables-lost", "engine/maintenance/delete_files", "uses:set_options::garbage_of_dropped"),
    bug("given-up-file-stays", "engine/files/reuse", "drumlin:reuse::"),
    bug("given-up-wal-has-no-length", "engine/wal/log", "sim:60"),
    bug("given-up-wal-told-as-changes", "engine/wal/tail", "faults:changes::changes_survive"),
    bug("group-numbers-overlap", "engine/write/commit", "sim"),
    bug("group-published-out-of-turn", "engine/write/published", "sim"),
    bug("half-recovery-taken-for-a-wal", "engine/wal/log", "uses:two_phase::a_mended_record"),
    bug("held-model-removed", "engine/caches/models", "drumlin:models::store::"),
    bug("history-forgets-the-oldest", "engine/version/history", "drumlin:version::history::"),
    bug("history-unpinned-at-opening", "engine/store/history", "uses:history::every_time"),
    bug("idle-families-keep-wal", "engine/write/rotate", "uses:families::idle_families"),
    bug("import-keeps-old-numbers", "engine/maintenance/import", "uses:family_copies::sequence"),
    bug("import-takes-blob-references", "engine/maintenance/import", "uses:family_copies::what_cannot"),
    bug("imported-family-first-alone", "engine/version/set", "uses:version_set::a_family_that"),
    bug("ingest-outlives-earlier-writes", "engine/maintenance/ingest", "faults:copies::what_was_written"),
    bug("ingested-at-an-old-number", "engine/maintenance/ingest", "sim"),
    bug("ingested-told-late", "engine/maintenance/ingest", "uses:events::events_tell"),
    bug("ingested-under-the-memtable", "engine/maintenance/ingest", "sim"),
    bug("keys-taken-in-locked-ranges", "engine/txn/lock_table", "drumlin:txn::range_lock_tests::locks"),
    bug("labels-unescaped", "engine/watch/prometheus", "drumlin:watch::prometheus::"),
    bug("laid-out-with-range-tombstones", "engine/read/resident", "faults:model::plain_tables"),
    bug("later-range-tombstones-on-top", "memtable", "range_tombstones"),
    bug("later-wal-windows-shifted", "fs", "faults:kill9::a_process_killed_with_large"),
    bug("left-over-piece-read-again", "fs", "drumlin_fs:readahead::"),
    bug("level-property-one-off", "engine/watch/properties", "smoke:properties_and"),
    bug("leveldb-tables-foreign", "engine/files/names", "drumlin:names::"),
    bug("line-behind-the-next-forgotten", "engine/write/queue", "sim"),
    bug("linked-file-cut", "engine/files/trash", "drumlin:trash::"),
    bug("listpack-back-length-believed", "rdb/listpack", "drumlin_rdb:listpack::"),
    bug("lock-granted-while-held", "engine/txn/lock", "drumlin:txn::"),
    bug("longer-keys-within-the-prefix", "engine/read", "uses:prefix_walk::walks_within_capped"),
    bug("lost-change-not-logged-again", "engine/db/recover", "faults:changes::changes_survive"),
    bug("lost-section-unnoticed", "engine/wal/dir", "uses:two_phase::a_lost_wal"),
    bug("lzf-overlap-forgotten", "rdb/lzf", "drumlin_rdb:lzf::"),
    bug("made-blobs-forgotten", "engine/background/made_files", "uses:leftovers::"),
    bug("made-tables-forgotten", "engine/background/made_files", "uses:leftovers::"),
    bug("manifest-edit-unsynced", "engine/version", "sim"),
    bug("manual-waits-for-ever", "engine/background/wait", "sim:50"),
    bug("marks-of-other-logs-believed", "engine/wal/record", "drumlin:record::"),
    bug("memtable-freed-though-flush-failed", "engine/store/install", "sim"),
    bug("merged-onto-a-deleted-range", "engine/txn/family_writes", "uses:indexed_batch::"),
    bug("merges-renew-the-time", "engine/family/ttl", "uses:ttl::reads_show"),
    bug("mildest-measure-decides", "engine/watch/pressure", "drumlin:pressure::verdict::"),
    bug("missing-wal-passed-over", "engine/wal/replay", "faults:corruption::a_missing_wal"),
    bug("model-of-another-id-taken", "engine/caches/models", "drumlin:models::"),
    bug("models-in-use-removed", "engine/store/obsolete", "table_formats:models::"),
    bug("moment-before-its-sync", "engine/maintenance/history", "faults:history::moments_outlive"),
    bug("moments-never-end", "engine/family/moment", "uses:views::"),
    bug("mongo-bounds-of-arrays-combined", "doc-store/bounds", "store:model::every_plan"),
    bug("mongo-checksum-unchecked", "mongo/wire/request", "drumlin_mongo:answer::"),
    bug("mongo-clients-unasked", "mongo/net/tls", "tls:clients_show"),
    bug("mongo-declared-size-unchecked", "mongo/wire/compressed", "drumlin_mongo:wire::compressed::"),
    bug("mongo-documents-unlocked", "doc-store/locks", "drumlin_doc_store:locks::"),
    bug("mongo-duplicates-taken", "doc-store/insert", "store:operations::inserts_stop"),
    bug("mongo-expiry-at-once", "doc-store/expire", "store:operations::documents_go"),
    bug("mongo-failures-uncounted", "mongo/counters", "drumlin_mongo:counters::"),
    bug("mongo-greetings-never-wait", "mongo/command/handshake", "drumlin_mongo:answer::"),
    bug("mongo-journaled-unsynced", "mongo/command/table", "drumlin_mongo:command::table::"),
    bug("mongo-last-newline-counts", "doc/regex/pattern", "drumlin_doc:regex::"),
    bug("mongo-missing-equals-null", "doc/expression/table", "doc:expressions::"),
    bug("mongo-months-overflow", "doc/expression/date", "doc:expressions::"),
    bug("mongo-multikey-unmarked", "doc-store/insert", "store:model::every_plan"),
    bug("mongo-next-message-forgotten", "mongo/net/connection", "pipelined"),
    bug("mongo-old-entries-stay", "doc-store/modify", "store:model::every_plan"),
    bug("mongo-optional-letters-in-bounds", "doc/regex/translate", "store:model::every_plan"),
    bug("mongo-partial-filter-unstored", "doc-store/catalog", "store:operations::documents_go"),
    bug("mongo-partial-indexes-have-all", "doc-store/plan", "store:model::every_plan"),
    bug("mongo-proof-unchecked", "mongo/auth/scram", "drumlin_mongo:auth::scram::"),
    bug("mongo-reads-for-all", "mongo/auth/roles", "drumlin_mongo:auth::roles::"),
    bug("mongo-renamed-name-stays", "doc-store/ddl", "store:operations::a_renamed"),
    bug("mongo-renamed-over-stays", "doc-store/ddl", "store:operations::a_renamed"),
    bug("mongo-replies-to-the-first", "mongo/answer", "drumlin_mongo:answer::"),
    bug("mongo-strict-takes-all", "mongo/command/stable_api", "commands:the_stable_api"),
    bug("mongo-tls-not-required", "mongo/net/connection", "tls:connections_without"),
    bug("mongo-unheard-forgotten", "mongo/net/connection", "pipelined"),
    bug("mongo-update-pipelines-end-early", "mongo/pipeline/update", "commands:a_pipeline"),
    bug("mongo-updates-move-ids", "doc/update/apply", "commands:a_pipeline"),
    bug("mongo-waited-over-unsent", "mongo/net", "drumlin_mongo:net::connection::"),
    bug("mongo-writes-timed-as-commands", "mongo/counters", "drumlin_mongo:counters::"),
    bug("new-manifest-unsynced", "engine/version", "cuts"),
    bug("newcomer-overtakes-waiters", "engine/txn/lock", "drumlin:txn::"),
    bug("newest-notice-told-first", "engine/watch/notices", "drumlin:notices::"),
    bug("newest-sync-by-seqno", "engine/write", "drumlin:commit_tests::"),
    bug("next-table-has-no-say", "engine/iter", "drumlin:read::tests::"),
    bug("ninth-byte-unread", "succinct", "drumlin_succinct:keys::packed::"),
    bug("no-delimiter-after-empty", "engine/family/merge_operators", "drumlin:merge_operators::"),
    bug("no-header-at-block-ends", "engine/wal/record", "drumlin:record::"),
    bug("no-stall-kept-by-leaders-only", "engine/write/queue", "drumlin:commit_tests::"),
    bug("notices-unbounded", "engine/watch/notices", "drumlin:notices::"),
    bug("object-answer-cut-short", "object-store/download", "objects:files::a_short_answer"),
    bug("object-lock-lost-unseen", "object-store/bucket", "objects:locks::who_lost"),
    bug("object-lock-of-others-taken", "object-store/lock", "objects:locks::the_second"),
    bug("old-verdict-holds-on", "engine/background/pick", "drumlin:quiet::"),
    bug("old-wal-numbers-unmarked", "engine/db/open", "faults:crash::wal_files_in"),
    bug("older-wals-unsynced", "engine/wal/log", "cuts"),
    bug("oldest-options-file-read", "engine/options/file", "uses:options_kept::"),
    bug("oldest-wal-not-replayed", "engine/db/open", "sim"),
    bug("only-thread-not-lent", "engine/background/run", "faults:one_thread::inside_a_compaction_that"),
    bug("options-set-one-by-one", "engine/maintenance/set_options", "uses:set_options::a_failing_option"),
    bug("overlay-turns-with-one-cursor", "engine/txn/overlay", "uses:indexed_batch::"),
    bug("packed-names-may-repeat", "rdb/decode/chunk", "drumlin_rdb:decode::chunk::"),
    bug("patch-level-lost", "engine/options/vintage", "drumlin:vintage::"),
    bug("pause-waits-for-nobody", "engine/maintenance/pause", "uses:set_options::a_pause_waits"),
    bug("pebble-taken-for-rocksdb", "engine/db/foreign", "uses:refused::"),
    bug("perf-counts-once", "base/perf", "drumlin_base:perf::"),
    bug("perf-times-unasked", "base/perf", "drumlin_base:perf::"),
    bug("piece-owed-early", "engine/background/manual_queue", "drumlin:manual_queue::"),
    bug("pin-ends-with-its-first-holder", "engine/family/snapshot", "drumlin:snapshot::"),
    bug("plain-names-may-repeat", "rdb/collect", "drumlin_rdb:collect::"),
    bug("poison-told-as-its-cause", "engine/store/health", "faults:io_errors::a_failed_wal_sync"),
    bug("prepared-locks-forgotten", "engine/txn/transaction", "uses:two_phase::comes_back"),
    bug("prepared-not-carried-over", "engine/db/recover", "uses:two_phase::comes_back"),
    bug("promised-room-kept", "engine/files/space", "drumlin:space::"),
    bug("queued-behind-one-that-waits-for-it", "engine/txn/range_locks", "drumlin:txn::range_lock_tests::whoever"),
    bug("quiet-work-never-yields", "engine/background/quiet", "uses:read_compaction::"),
    bug("quote-closes-within-a-word", "resp/words", "drumlin_resp:words::"),
    bug("range-kept-by-nobody", "engine/txn/lock_table", "drumlin:txn::range_lock_tests::a_key"),
    bug("range-takes-half-a-table", "engine/compaction/within", "uses:set_options::whole_tables_of"),
    bug("range-tombstone-dropped-early", "engine/compaction", "sim"),
    bug("range-tombstone-unseen", "engine/iter/range_tombstone", "sim"),
    bug("range-tombstones-from-the-future", "memtable", "range_tombstones"),
    bug("range-tombstones-of-the-next-memtable", "engine/family/super_version", "drumlin:read::tests::"),
    bug("range-unvalidated", "engine/txn/transaction", "uses:transaction_ranges::"),
    bug("ranks-from-the-next-sample", "engine/version/key_ranks", "uses:counting::counts_hold"),
    bug("read-change-purged", "engine/wal/archive", "uses:changes::changes_go_by"),
    bug("reader-passes-over-what-came-aside", "engine/version/follow", "faults:follower::a_reader_that_opens"),
    bug("reads-never-looked-at-again", "engine/txn/transaction", "uses:optimistic::"),
    bug("reads-reorder-operands", "engine/iter", "sim"),
    bug("records-unaligned", "table/plain", "drumlin_table:plain::record::"),
    bug("recovered-changes-removed", "engine/store/obsolete", "uses:changes::every_kind"),
    bug("redis-all-waits-end-with-one", "redis/state", "beside:suite::clients_that_wait"),
    bug("redis-blind-write-over-a-collection", "redis-store/keyspace", "store:keyspace::a_blind_write"),
    bug("redis-cardinality-outlives-a-change", "redis-store/types/hyperloglog/sketch", "drumlin_redis_store:types::hyperloglog::"),
    bug("redis-change-wakes-nobody", "redis/state", "served:under_always"),
    bug("redis-cold-changes-stay", "redis/cold", "drumlin_redis:cold::"),
    bug("redis-commit-forgets-the-sync", "redis/writer", "served:under_stalls"),
    bug("redis-deaths-count-before-a-sync", "redis-store/live", "drumlin_redis_store:filters::"),
    bug("redis-emptied-value-stays", "redis-store/types/elements", "store:hash::changes_are_told"),
    bug("redis-expiry-counts-before-a-sync", "redis-store/filters", "drumlin_redis_store:filters::"),
    bug("redis-failover-before-the-end", "redis/replicas/hand_over", "beside:failover::a_failover_ends"),
    bug("redis-found-expired-takes-the-new", "redis-store/expire", "beside:suite::what_a_command_finds"),
    bug("redis-found-expired-untold", "redis/found_expired", "beside:primary::replicas_are_told"),
    bug("redis-hand-loses-what-was-read", "redis/hands/lend", "served:lent_connections"),
    bug("redis-hand-of-an-earlier-moment", "redis/hands/hand", "served:lent_connections"),
    bug("redis-hands-are-not-called", "redis/hands/lend", "served:lent_connections"),
    bug("redis-migrate-unread", "redis/migrate/task", "beside:migrate::a_change_meanwhile"),
    bug("redis-newest-waiter-first", "redis/state", "beside:suite::clients_that_wait"),
    bug("redis-node-changed-and-not-written", "redis-store/tree/nodes", "store:tree::a_list_is"),
    bug("redis-node-keeps-a-failed-change", "redis-store/tree/nodes", "store:tree::a_list_is"),
    bug("redis-nodes-of-an-earlier-moment", "redis/server", "served:under_stalls"),
    bug("redis-old-name-beyond-its-end", "redis/replicas/history", "drumlin_redis:replicas::history::"),
    bug("redis-pop-of-one-that-is-gone", "redis-store/types/elements", "store:set::members_that_are_taken"),
    bug("redis-pop-told-as-it-came", "redis/cmd/set", "beside:primary::replicas_have_what"),
    bug("redis-queued-before-the-ban", "redis/dispatch", "beside:acl::rights_that_go_away"),
    bug("redis-reply-before-its-sync", "redis/writer", "served:under_always"),
    bug("redis-reply-of-a-write-on-its-way", "redis/writer", "served:under_stalls"),
    bug("redis-rough-trim-cuts-nodes", "redis-store/types/stream/trim", "store:stream::a_rough_trim"),
    bug("redis-rule-unquoted", "redis/acl/describe", "drumlin_redis:acl::file::"),
    bug("redis-scan-passes-an-element", "redis-store/types/elements", "store:set::members_that_stay"),
    bug("redis-separator-a-byte-short", "redis-store/types/zset/score", "drumlin_redis_store:types::zset::score::"),
    bug("redis-splice-keeps-a-failed-change", "redis-store/tree/nodes", "store:tree::an_ordered_tree"),
    bug("redis-splice-leaves-the-count", "redis-store/tree/splice", "drumlin_redis_store:tree::splice::"),
    bug("redis-time-outlives-its-field", "redis-store/types/elements", "store:field_expiry::a_hash_that_grows"),
    bug("redis-tree-leaves-long-entries", "redis-store/tree/cut", "store:tree::a_list_is"),
    bug("redis-undone-script-draws-on", "redis/script/run", "beside:script::a_script_over"),
    bug("redis-untold-change", "redis/tracking/tracker", "drumlin_redis:tracking::"),
    bug("redis-unwritten-change-read", "redis/life", "served:a_change_that"),
    bug("redis-write-answered-beside", "redis/cold", "served:under_always"),
    bug("refused-import-leaves-names", "engine/maintenance/import", "uses:family_copies::what_cannot"),
    bug("refused-ingest-leaves-names", "engine/maintenance/ingest", "faults:copies::an_external_table_is_taken"),
    bug("removed-range-takes-its-end", "engine/compaction/stream", "drumlin:stream_tests::"),
    bug("removed-wal-poisons", "engine/wal/log", "faults:copies::a_wal_given_up"),
    bug("repair-skips-a-wal", "engine/maintenance/repair", "smoke:the_newest"),
    bug("repair-turns-ages-round", "engine/maintenance/repair", "smoke:the_newest"),
    bug("replay-takes-what-began-later", "engine/wal/replay", "faults:follower::a_wal_that_begins"),
    bug("replayed-over-a-gap", "engine/wal/replay", "cuts"),
    bug("restore-keeps-current-for-a-while", "engine/maintenance/backup/restore", "faults:backups::a_restore"),
    bug("restore-takes-damage", "engine/maintenance/backup/restore", "uses:backups::damage_is_found"),
    bug("reused-file-uncut", "engine/files/reuse", "drumlin:reuse::"),
    bug("rolled-back-comes-back", "engine/db/recover", "uses:two_phase::history"),
    bug("rolled-back-writes-read", "engine/txn/own_writes", "uses:transactions::"),
    bug("same-model-stays-cheap", "engine/caches/models", "drumlin:models::store::"),
    bug("scrub-goes-on", "engine/maintenance/verify", "uses:set_options::a_scrub_that"),
    bug("scrub-passes-models-over", "engine/maintenance/verify", "table_formats:models::a_scrub"),
    bug("scrub-reads-no-values", "engine/maintenance/verify", "uses:blobs::a_scrub_reads"),
    bug("second-name-recycled", "engine/wal/preallocator", "drumlin:preallocator::"),
    bug("section-too-large-to-carry", "engine/write/two_phase", "drumlin:two_phase::"),
    bug("separate-values-shifted", "table/block", "drumlin_table:block::"),
    bug("set-options-unwritten", "engine/maintenance/set_options", "uses:set_options::what_is_set"),
    bug("shared-blobs-unnoticed", "engine/maintenance/repair_blobs", "uses:blobs::repair"),
    bug("shell-follows-when-idle-alone", "cli/shell/run", "follow:a_shell"),
    bug("short-write-sent-whole", "fs/net/mem_transfer", "net:bytes::"),
    bug("signed-file-number", "engine/files/names", "drumlin:names::"),
    bug("sigterm-cuts-a-batch", "cli/interrupt", "follow:changes_end"),
    bug("single-deletions-uncounted", "memtable", "naive"),
    bug("slow-codec-in-l1", "engine/family/settings", "drumlin:family::settings::"),
    bug("snapshot-reads-one-more", "engine/db/handle", "sim"),
    bug("snapshot-unvalidated", "engine/txn/transaction", "uses:transactions::"),
    bug("snapshots-ignored", "engine/family/snapshot", "sim"),
    bug("stored-operator-over-the-callers", "engine/options/stored", "drumlin:options::stored::"),
    bug("stored-ttl-not-taken", "engine/options/stored", "uses:ttl::reads_show"),
    bug("straddling-versions-unread", "engine/read", "drumlin:read::tests::get"),
    bug("successor-too-small", "base", "drumlin_base:comparator::"),
    bug("sum-saturates", "engine/family/merge_operators", "drumlin:merge_operators::"),
    bug("sync-lost-in-group", "engine/write", "cuts"),
    bug("table-deletions-forgotten", "engine/watch/live_files", "uses:sizes_and_removal::tables_are_told"),
    bug("table-levels-forgotten", "engine/watch/live_files", "uses:sizes_and_removal::tables_are_told"),
    bug("table-names-unsynced", "engine", "cuts"),
    bug("table-size-unchecked", "engine/caches/table_cache", "drumlin:table_cache::"),
    bug("tables-ahead-stay-open", "engine/caches/table_cache", "drumlin:table_cache::"),
    bug("tickers-one-off", "engine/watch/statistics", "background_rate"),
    bug("times-of-the-first-stripe-only", "base", "drumlin_base:histogram::"),
    bug("tls-certificates-optional", "tls/settings", "doors:tls::a_client_without"),
    bug("told-while-telling", "engine/watch/notices", "drumlin:notices::"),
    bug("tombstone-dropped-early", "engine/compaction", "sim"),
    bug("torn-options-believed", "engine/options/added", "drumlin:options::added::"),
    bug("torn-tail-kept", "engine/wal/log", "faults:copies::what_a_torn_append_left"),
    bug("transaction-reads-options-lost", "engine/txn/transaction", "uses:transactions::a_read_as_of"),
    bug("trash-unmarked", "engine/files/trash", "drumlin:trash::"),
    bug("unasked-direction-told", "fs/net/posix_poll", "net:contract::posix::"),
    bug("unix-mode-masked", "fs/net/posix", "net:posix::a_unix_path"),
    bug("unsynced-change-told", "engine/db/changes", "uses:changes::only_what"),
    bug("unused-time-hoarded", "fs", "drumlin_fs:rate::"),
    bug("upper-bound-lost", "engine/options/settings", "faults:model::the_usual"),
    bug("usage-of-whole-tables", "engine/watch/sizes", "uses:sizes_and_removal::usage_counts"),
    bug("versions-share-a-value", "table/searchable", "drumlin_table:searchable::row::"),
    bug("views-read-the-present", "engine/db/view", "uses:views::"),
    bug("wait-a-bucket-up", "engine/watch/waits", "drumlin:waits::"),
    bug("waits-of-the-full-line-elsewhere", "engine/watch/waits", "drumlin:waits::"),
    bug("wake-before-wait-lost", "fs/net/mem_ready", "net:contract::memory::wakes_before"),
    bug("wake-up-lost", "engine/write/queue", "sim"),
    bug("wal-dir-unclaimed", "engine/wal/dir", "uses:wal_dir::"),
    bug("wal-elsewhere-unseen", "engine/wal/dir", "uses:wal_dir::"),
    bug("wal-name-unsynced", "engine/wal/preallocator", "cuts"),
    bug("wal-of-a-section-let-go", "engine/version/set", "uses:two_phase::the_wal"),
    bug("wal-removed-early", "engine/store/obsolete", "sim"),
    bug("wal-sync-skipped", "engine/wal/log", "sim"),
    bug("walks-end-at-their-last-key", "engine/txn/overlay", "uses:optimistic::"),
    bug("walks-show-what-expired", "engine/read/iterator", "uses:ttl::reads_show"),
    bug("work-in-no-time-lost", "engine/watch/pressure", "drumlin:pressure::speed::"),
    bug("work-of-the-level-above", "engine/watch/level_work", "metrics:figures_are"),
    bug("written-cheaply-for-ever", "engine/background/models", "drumlin:background::models::"),
];

/// A bug that no suite can miss: its detection shows that failures are reported. Made by the
/// simulator.
pub const CANARY: Bug = bug("canary", "sim/world", "sim");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_catalogue_is_sorted_and_names_no_bug_twice() {
        assert!(BUGS.is_sorted_by(|one, other| one.name < other.name));
        assert!(BUGS.len() >= 100, "{}", BUGS.len());
    }

    #[test]
    fn the_catalogue_has_what_the_sources_have_and_nothing_else() {
        let mut found = BTreeSet::new();
        let mut elsewhere = Vec::new();
        for source in drumlin_tidy::sources(&[".rs"]) {
            for after in source.text.split("::bug!(\"").skip(1) {
                let name = after.split('"').next().unwrap_or_default();
                // The placeholder in the macro's documentation.
                if name == "name" {
                    continue;
                }
                let place = source.path.replacen("crates/", "", 1).replace("/src/", "/");
                let known = BUGS.iter().chain([&CANARY]).find(|bug| bug.name == name);
                let in_room = |bug: &&Bug| {
                    let inside = place.strip_prefix(bug.module);
                    inside.is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
                };
                if known.filter(in_room).is_none() {
                    elsewhere.push(format!("{name}: {place}"));
                }
                found.insert(name.to_owned());
            }
        }
        assert!(elsewhere.is_empty(), "not in their module: {elsewhere:?}");
        let names = BUGS.iter().map(|bug| bug.name);
        let gone: Vec<_> = names.filter(|name| !found.contains(*name)).collect();
        assert!(gone.is_empty(), "in the catalogue alone: {gone:?}");
    }

    /// Goal: the table in docs/testing.md is that of the catalogue. Method: names, modules and suites of its rows.
    #[test]
    fn the_documented_table_has_every_bug() {
        let documents = drumlin_tidy::sources(&[".md"]);
        let text = documents.iter().find(|file| file.path == "docs/testing.md");
        let text = &text.expect("the document is there").text;
        for bug in BUGS.iter().chain([&CANARY]) {
            let suite = bug.suite.split(':').next().unwrap_or_default();
            let row = format!("| `{}` | `{}` | `{suite}` |", bug.name, bug.module);
            assert!(text.contains(&row), "no row begins {row}");
        }
    }
}
