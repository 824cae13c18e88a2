//! The column families and how they are opened.

use std::path::Path;
use std::sync::Arc;

use drumlin::{ColumnFamily, Db, Error, FamilyOptions, Options, Result};

use crate::filters::{DeadCollections, Expired, Later, Watermark};
use crate::live::Live;
use crate::tree::Splices;

/// How many families there are.
pub(crate) const FAMILIES: usize = 5;

/// The families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FamilyName {
    Keys,
    Sub,
    Live,
    Ttl,
    Default,
}

impl FamilyName {
    pub(crate) const ALL: [Self; FAMILIES] =
        [Self::Keys, Self::Sub, Self::Live, Self::Ttl, Self::Default];
}

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    /// Options of the engine: its budget, environment and so on. Its families' options are the store's own.
    pub engine: Options,
}

/// Handles of the families.
#[derive(Clone, Debug)]
pub(crate) struct Families {
    pub(crate) keys: ColumnFamily,
    pub(crate) sub: ColumnFamily,
    pub(crate) live: ColumnFamily,
    pub(crate) ttl: ColumnFamily,
    pub(crate) meta: ColumnFamily,
}

impl Families {
    pub(crate) fn of(&self, name: FamilyName) -> &ColumnFamily {
        match name {
            FamilyName::Keys => &self.keys,
            FamilyName::Sub => &self.sub,
            FamilyName::Live => &self.live,
            FamilyName::Ttl => &self.ttl,
            FamilyName::Default => &self.meta,
        }
    }
}

/// What the filters ask.
pub(crate) struct FilterState {
    pub(crate) live: Later<Live>,
    pub(crate) watermark: Arc<Watermark>,
}

/// Opens the database in `dir`, or makes it.
///
/// # Errors
/// Of [`Db::open_families`]; `InvalidArgument` where the directory is another program's.
pub(crate) fn open(dir: &Path, options: Options) -> Result<(Db, Families, FilterState)> {
    let state = FilterState {
        live: Later::default(),
        watermark: Arc::default(),
    };
    let base = options.family.clone();
    let keys = FamilyOptions {
        compaction_filter: Some(Arc::new(Expired {
            watermark: Arc::clone(&state.watermark),
        })),
        ..base.clone()
    };
    let sub = FamilyOptions {
        compaction_filter: Some(Arc::new(DeadCollections {
            live: Arc::clone(&state.live),
        })),
        merge_operator: Some(Arc::new(Splices)),
        ..base.clone()
    };
    let wanted = [
        ("keys", keys),
        ("sub", sub),
        ("live", base.clone()),
        ("ttl", base),
    ];
    let known = match Db::list_families(dir, &options.env) {
        Ok(names) => names,
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => return Err(error),
    };
    let strangers = known.iter().find(|name| {
        *name != drumlin::DEFAULT_FAMILY && wanted.iter().all(|(ours, _)| ours != name)
    });
    if let Some(stranger) = strangers {
        return Err(Error::invalid_argument(format!(
            "the directory has a column family {stranger:?}: it is not a keyspace of this server"
        )));
    }
    let present: Vec<(&str, FamilyOptions)> = wanted
        .iter()
        .filter(|(name, _)| known.iter().any(|known| known == name))
        .map(|(name, family)| (*name, family.clone()))
        .collect();
    let db = Db::open_families(dir, options, &present)?;
    for (name, family) in wanted {
        if db.column_family(name).is_none() {
            db.create_family(name, family)?;
        }
    }
    let find = |name: &str| {
        let missing = || Error::corruption(format!("the column family {name} is missing"));
        db.column_family(name).ok_or_else(missing)
    };
    let families = Families {
        keys: find("keys")?,
        sub: find("sub")?,
        live: find("live")?,
        ttl: find("ttl")?,
        meta: db.default_family().clone(),
    };
    Ok((db, families, state))
}
