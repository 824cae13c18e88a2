//! Texts and lists of options that are kept and read back, and steer nothing here but LOG and what tables say of themselves.

use std::collections::BTreeSet;

use drumlin_fs::machine;

use crate::fields::CuckooTableOptions;

/// RocksDB's default for the machine that tables name.
const HOST_NAME: &[u8] = b"__hostname__";

/// What was set.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// Where LOG goes; the database's directory where it is empty.
    pub(crate) log_dir: Vec<u8>,
    /// What would mark tables for compaction, as LOG tells it.
    pub(crate) collectors: Vec<String>,
    /// Of cuckoo tables, in whose place others are written.
    pub(crate) cuckoo: Option<CuckooTableOptions>,
    /// What tables name as the machine; [`HOST_NAME`] stands for the machine's name.
    host_id: Vec<u8>,
    off_peak: Vec<u8>,
    /// Files whose checksums go to the disk with them.
    checksum_types: BTreeSet<i32>,
    /// Shapes of trees whose tables get hints of how long they live.
    hint_styles: BTreeSet<i32>,
}

impl Default for Recorded {
    fn default() -> Self {
        Self {
            log_dir: Vec::new(),
            collectors: Vec::new(),
            cuckoo: None,
            host_id: HOST_NAME.to_vec(),
            off_peak: Vec::new(),
            checksum_types: BTreeSet::new(),
            // Leveled.
            hint_styles: BTreeSet::from([0]),
        }
    }
}

impl Recorded {
    /// The machine that tables name.
    pub(crate) fn host_id(&self) -> String {
        match &self.host_id[..] {
            HOST_NAME => machine::host_name(),
            id => String::from_utf8_lossy(id).into_owned(),
        }
    }
}

pub(crate) mod calls {
    use std::ffi::CStr;
    use std::os::unix::ffi::OsStrExt;

    use crate::options::OpenOptions;

    pub(crate) fn options_set_db_log_dir(options: &mut OpenOptions, dir: &CStr) {
        options.recorded.log_dir = dir.to_bytes().to_vec();
    }

    pub(crate) fn options_get_db_log_dir(options: &mut OpenOptions) -> Option<&[u8]> {
        Some(&options.recorded.log_dir)
    }

    pub(crate) fn options_get_wal_dir(options: &mut OpenOptions) -> Option<&[u8]> {
        let dir = options.wal_dir.as_ref();
        Some(dir.map_or(&[][..], |dir| dir.as_os_str().as_bytes()))
    }

    pub(crate) fn options_set_db_host_id(options: &mut OpenOptions, id: &CStr) {
        options.recorded.host_id = id.to_bytes().to_vec();
    }

    pub(crate) fn options_get_db_host_id(options: &mut OpenOptions) -> Option<&[u8]> {
        Some(&options.recorded.host_id)
    }

    pub(crate) fn options_set_daily_offpeak_time_utc(options: &mut OpenOptions, time: &CStr) {
        options.recorded.off_peak = time.to_bytes().to_vec();
    }

    pub(crate) fn options_get_daily_offpeak_time_utc(options: &mut OpenOptions) -> Option<&[u8]> {
        Some(&options.recorded.off_peak)
    }

    /// The functions of a set of numbers.
    macro_rules! sets {
        ($field:ident: $add:ident, $remove:ident, $clear:ident, $contains:ident, $count:ident) => {
            pub(crate) fn $add(options: &mut OpenOptions, number: i32) {
                options.recorded.$field.insert(number);
            }

            pub(crate) fn $remove(options: &mut OpenOptions, number: i32) {
                options.recorded.$field.remove(&number);
            }

            pub(crate) fn $clear(options: &mut OpenOptions) {
                options.recorded.$field.clear();
            }

            pub(crate) fn $contains(options: &mut OpenOptions, number: i32) -> bool {
                options.recorded.$field.contains(&number)
            }

            pub(crate) fn $count(options: &mut OpenOptions) -> usize {
                options.recorded.$field.len()
            }
        };
    }

    sets!(checksum_types: options_checksum_handoff_file_types_add, options_checksum_handoff_file_types_remove,
        options_checksum_handoff_file_types_clear, options_checksum_handoff_file_types_contains,
        options_checksum_handoff_file_types_count);
    sets!(hint_styles: options_calculate_sst_write_lifetime_hint_set_add,
        options_calculate_sst_write_lifetime_hint_set_remove, options_calculate_sst_write_lifetime_hint_set_clear,
        options_calculate_sst_write_lifetime_hint_set_contains, options_calculate_sst_write_lifetime_hint_set_count);
}
