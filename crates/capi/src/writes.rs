//! Writes of a database.

pub(crate) mod calls {
    use drumlin::{Error, Result, WriteBatch};

    use crate::batch::Batch;
    use crate::database::Database;
    use crate::family::Family;
    use crate::fields::Writeoptions;
    use crate::timestamps;

    /// Writes what `fill` puts into a batch, for the family's number.
    fn write_one(
        db: &Database,
        options: &Writeoptions,
        family: Option<&Family>,
        fill: impl FnOnce(&mut WriteBatch, u32) -> Result<()>,
    ) -> Result<()> {
        let options = options.to_engine()?;
        timestamps::refuse(db.family(family))?;
        let mut batch = WriteBatch::new();
        fill(&mut batch, db.family(family).id())?;
        db.write(batch, &options)
            .map_err(crate::batch::as_of_a_write)
    }

    pub(crate) fn put_cf(
        db: &Database,
        options: &Writeoptions,
        family: Option<&Family>,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        if db.locks().is_none() {
            let (family, options) = (db.family(family), options.to_engine()?);
            timestamps::refuse(family)?;
            let put = db.db().put_cf(family, key, value, &options);
            return put.map_err(crate::batch::as_of_a_write);
        }
        write_one(db, options, family, |batch, id| {
            batch.put_cf(id, key, value)
        })
    }

    pub(crate) fn delete_cf(
        db: &Database,
        options: &Writeoptions,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<()> {
        write_one(db, options, family, |batch, id| batch.delete_cf(id, key))
    }

    pub(crate) fn singledelete_cf(
        db: &Database,
        options: &Writeoptions,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<()> {
        write_one(db, options, family, |batch, id| {
            batch.single_delete_cf(id, key)
        })
    }

    pub(crate) fn delete_range_cf(
        db: &Database,
        options: &Writeoptions,
        family: Option<&Family>,
        begin: &[u8],
        end: &[u8],
    ) -> Result<()> {
        timestamps::refuse(db.family(family))?;
        if db.family(family).order().compare(begin, end).is_gt() {
            let message = "end key comes before start key";
            return Err(Error::invalid_argument(message));
        }
        write_one(db, options, family, |batch, id| {
            batch.delete_range_cf(id, begin, end)
        })
    }

    pub(crate) fn merge_cf(
        db: &Database,
        options: &Writeoptions,
        family: Option<&Family>,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        write_one(db, options, family, |batch, id| {
            batch.merge_cf(id, key, operand)
        })
    }

    /// The batch stays as it is, and may be written again.
    pub(crate) fn write(db: &Database, options: &Writeoptions, batch: &mut Batch) -> Result<()> {
        batch.write(db, options)
    }
}
