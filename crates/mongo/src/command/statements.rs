//! The statements of `update` and `delete`: their shape is looked at before the first one is run.

use drumlin_doc::{Document, Refusal};

use super::call::Call;
use super::insert::check_count;
use super::shape::{Shape, check, check_collation, required, unknown};

/// The statements under `field`, which have no other arguments than those of `shapes`.
///
/// # Errors
/// `InvalidLength` for none or too many; `Location40415` for unknown arguments, `Location40414` where there is no `q`, `TypeMismatch`;
/// `CommandNotSupported` for collations.
pub(super) fn statements<'a>(
    call: &Call<'a>,
    field: &str,
    shapes: &[(&str, Shape)],
) -> Result<Vec<Document<'a>>, Refusal> {
    let all = call.documents(field)?;
    check_count(all.len())?;
    let context = format!("{}.{field}", call.name);
    for of in &all {
        for element in *of {
            let name = element.name_str();
            if name == "collation" {
                check_collation(&context, element.value)?;
            } else if !shapes.iter().any(|(known, _)| *known == name) {
                return Err(unknown(&context, name));
            }
        }
        required(&context, *of, "q", Shape::Document)?;
        check(&context, *of, shapes)?;
    }
    Ok(all)
}
