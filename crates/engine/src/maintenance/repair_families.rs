//! The families of a database whose MANIFEST is written anew.
//!
//! The old MANIFEST is asked first, as far as it can be read: it knows families without tables, and which table is
//! whose. Tables that it does not know name their families themselves. (One that was imported names the family it was
//! written for, elsewhere: two names of one id are two families.) Writes that are in the WAL alone name a family by its
//! id. One that the old MANIFEST dropped, or for which the OPTIONS file leaves no name, is gone, and the next open passes
//! over its writes; any other is kept, in a family called after its id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drumlin_base::{Error, KeyOrder, Result};
use drumlin_fs::RandomAccessFile;

use crate::family::column_family::DEFAULT_FAMILY;
use crate::version::Told;
use crate::wal::record::RecordReader;
use crate::write::batch::{BatchIter, BatchPart, BatchView};

/// What a directory shows of its families.
pub(super) struct Signs<'a> {
    /// What the old MANIFEST says.
    pub(super) told: &'a Told,
    /// The number of each sound table, the id and the name of the family that it names, and its order.
    pub(super) tables: Vec<(u64, (u32, &'a str), &'a KeyOrder)>,
    /// The ids of families that the WAL has writes of.
    pub(super) in_wal: BTreeSet<u32>,
    /// The names in the OPTIONS file.
    pub(super) options: Option<Vec<String>>,
    /// The order of the caller's options.
    pub(super) given: &'a KeyOrder,
}

/// The families that a database is to have.
#[derive(Debug)]
pub(super) struct Families {
    pub(super) by_id: BTreeMap<u32, (String, KeyOrder)>,
    /// The family of each table.
    pub(super) of_tables: BTreeMap<u64, u32>,
    /// The highest id that was ever seen.
    pub(super) highest: u32,
}

impl Families {
    /// Tells from `signs` which there are.
    ///
    /// # Errors
    /// `InvalidArgument` for a family in an order that is neither the given one nor built in; `Corruption` where no id
    /// is free for a table's family.
    pub(super) fn find(signs: &Signs<'_>) -> Result<Self> {
        let ids = signs.tables.iter().map(|(_, (id, _), _)| *id);
        let ids = ids.chain(signs.in_wal.iter().copied());
        let mut families = Self {
            by_id: BTreeMap::new(),
            of_tables: BTreeMap::new(),
            highest: ids.max().unwrap_or(0).max(signs.told.max_family),
        };
        families.take_manifest(signs)?;
        families.take_tables(signs)?;
        let default = (DEFAULT_FAMILY.to_owned(), signs.given.clone());
        families.by_id.entry(0).or_insert(default);
        families.take_wal(signs);
        Ok(families)
    }

    fn take_manifest(&mut self, signs: &Signs<'_>) -> Result<()> {
        for (&id, family) in &signs.told.families {
            let name = match id {
                0 => DEFAULT_FAMILY,
                _ if drumlin_base::bug!("repair-forgets-families-without-tables") => continue,
                _ => &family.name,
            };
            if name.is_empty() {
                continue; // The record that added it is damaged: its tables have its name.
            }
            let Some(order) = order_named(family.order.as_deref(), signs.given) else {
                let order = family.order.as_deref().unwrap_or_default();
                return Err(Error::invalid_argument(format!(
                    "family {name:?} is in the order {order}, which was not given; nothing was changed"
                )));
            };
            self.by_id.insert(id, (name.to_owned(), order));
            let tables = family.tables.iter().map(|&number| (number, id));
            self.of_tables.extend(tables);
        }
        Ok(())
    }

    fn take_tables(&mut self, signs: &Signs<'_>) -> Result<()> {
        let mut named: BTreeMap<(u32, &str), Vec<(u64, &KeyOrder)>> = BTreeMap::new();
        for &(number, family, order) in &signs.tables {
            if !self.of_tables.contains_key(&number) {
                named.entry(family).or_default().push((number, order));
            }
        }
        // Of two families of one name the later one has it.
        for ((named_id, name), tables) in named.into_iter().rev() {
            let id = match self.by_id.get(&named_id) {
                Some((known, _)) if known != name && named_id != 0 => self.new_id()?,
                _ => named_id,
            };
            let name = match id {
                0 => DEFAULT_FAMILY,
                _ => name,
            };
            if !self.by_id.contains_key(&id) {
                let order = tables.first().map_or(signs.given, |(_, order)| order);
                let family = (self.free_name(name, id), order.clone());
                self.by_id.insert(id, family);
            }
            let tables = tables.into_iter().map(|(number, _)| (number, id));
            self.of_tables.extend(tables);
        }
        Ok(())
    }

    fn take_wal(&mut self, signs: &Signs<'_>) {
        let is_known = |name: &String| self.by_id.values().any(|(known, _)| known == name);
        let told = signs.options.as_ref();
        if told.is_some_and(|names| names.iter().all(is_known)) {
            return;
        }
        for &id in signs
            .in_wal
            .iter()
            .filter(|&&id| id > signs.told.max_family)
        {
            if !self.by_id.contains_key(&id) {
                let name = self.free_name(&format!("family-{id}"), id);
                self.by_id.insert(id, (name, signs.given.clone()));
            }
        }
    }

    fn new_id(&mut self) -> Result<u32> {
        let next = self.highest.checked_add(1);
        self.highest = next.ok_or_else(|| Error::corruption("every family id was given out"))?;
        Ok(self.highest)
    }

    /// `name`, or one like it where another family has it.
    fn free_name(&self, name: &str, id: u32) -> String {
        let mut free = name.to_owned();
        while self.by_id.values().any(|(known, _)| *known == free) {
            free = format!("{free}-{id}");
        }
        free
    }
}

/// The order stored under `name`; `given` where no name is stored.
fn order_named(name: Option<&str>, given: &KeyOrder) -> Option<KeyOrder> {
    match name {
        Some(name) if name != given.name() => KeyOrder::by_name(name),
        _ => Some(given.clone()),
    }
}

/// Adds to `ids` those of the families that a WAL file has writes of, up to its first damaged record.
pub(super) fn written_in(file: Arc<dyn RandomAccessFile>, wal: u64, ids: &mut BTreeSet<u32>) {
    let mut reader = RecordReader::new(file, wal);
    while let Ok(Some(record)) = reader.read() {
        let Ok(batch) = BatchView::new(record.payload) else {
            continue;
        };
        for part in batch.parts().flatten() {
            match part {
                BatchPart::Record(record) => {
                    ids.insert(record.family);
                }
                BatchPart::Prepared(section) => {
                    let records = BatchIter::new(section.records).flatten();
                    ids.extend(records.map(|record| record.family));
                }
                BatchPart::Commit(_) | BatchPart::Rollback(_) | BatchPart::LogData(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::ToldFamily;

    fn find(told: &Told, tables: &[(u64, u32, &'static str)]) -> Families {
        let order = &KeyOrder::Bytewise;
        let tables = tables.iter();
        let tables = tables.map(|&(number, id, name)| (number, (id, name), order));
        Families::find(&Signs {
            told,
            tables: tables.collect(),
            in_wal: BTreeSet::new(),
            options: None,
            given: order,
        })
        .unwrap()
    }

    fn names(families: &Families) -> Vec<(u32, &str)> {
        let by_id = families.by_id.iter();
        by_id.map(|(&id, (name, _))| (id, name.as_str())).collect()
    }

    #[test]
    fn two_names_of_one_id_and_two_ids_of_one_name_are_two_families() {
        let tables = [(10, 1, "users"), (11, 3, "users"), (12, 3, "imported")];
        let families = find(&Told::default(), &tables);
        let expected = [
            (0, "default"),
            (1, "users-1"),
            (3, "users"),
            (4, "imported"),
        ];
        assert_eq!(names(&families), expected);
        assert_eq!(
            families.of_tables,
            BTreeMap::from([(10, 1), (11, 3), (12, 4)])
        );
    }

    #[test]
    fn a_table_is_of_the_family_that_the_manifest_says() {
        let mut told = Told {
            max_family: 7,
            ..Told::default()
        };
        let mine = ToldFamily {
            name: "mine".to_owned(),
            tables: BTreeSet::from([10]),
            ..ToldFamily::default()
        };
        told.families.insert(5, mine);
        let families = find(&told, &[(10, 2, "theirs"), (11, 0, "")]);
        assert_eq!(names(&families), [(0, "default"), (5, "mine")]);
        assert_eq!(families.of_tables.get(&10), Some(&5));
        assert_eq!(families.highest, 7);
    }

    #[test]
    fn an_order_that_is_not_known_is_refused() {
        let mut told = Told::default();
        let odd = ToldFamily {
            name: "odd".to_owned(),
            order: Some("no.such.Order".to_owned()),
            ..ToldFamily::default()
        };
        told.families.insert(1, odd);
        let signs = Signs {
            told: &told,
            tables: Vec::new(),
            in_wal: BTreeSet::new(),
            options: None,
            given: &KeyOrder::Bytewise,
        };
        let error = Families::find(&signs).unwrap_err().to_string();
        assert!(error.contains("no.such.Order"), "{error}");
    }
}
