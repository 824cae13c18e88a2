//! The functions that look at all of their arguments.

use std::cmp::Ordering;

use crate::code::Code;
use crate::compare::compare;
use crate::raw::{OwnedValue, Value};

use super::function::{Arguments, Function, Made, Names, Shape, flag, truth};
use super::{arithmetic, array, convert, date, set, string, text_search};

/// The function of that name.
pub(super) fn function_of(name: &str) -> Option<&'static Function> {
    let at = FUNCTIONS.binary_search_by(|function| function.name.cmp(name));
    FUNCTIONS.get(at.ok()?)
}

const fn exactly(
    name: &'static str,
    count: usize,
    run: fn(&Function, Arguments<'_>) -> Made,
) -> Function {
    Function {
        name,
        shape: Shape::Exactly(count),
        run,
    }
}

const fn between(
    name: &'static str,
    (least, most): (usize, usize),
    run: fn(&Function, Arguments<'_>) -> Made,
) -> Function {
    Function {
        name,
        shape: Shape::Between(least, most),
        run,
    }
}

const fn named(
    name: &'static str,
    names: Names,
    codes: [Code; 3],
    run: fn(&Function, Arguments<'_>) -> Made,
) -> Function {
    Function {
        name,
        shape: Shape::Named(names, codes),
        run,
    }
}

const fn part(name: &'static str) -> Function {
    Function {
        name,
        shape: Shape::OneOrNamed(
            &[("date", true), ("timezone", false)],
            [
                Code::DatePartShape,
                Code::DatePartUnknown,
                Code::DatePartMissing,
            ],
        ),
        run: date::part,
    }
}

const ANY: (usize, usize) = (0, usize::MAX);
const TRIM: [Code; 3] = [Code::TrimShape, Code::TrimUnknown, Code::TrimMissing];
const REPLACE: [Code; 3] = [
    Code::ReplaceShape,
    Code::ReplaceUnknown,
    Code::ReplaceMissing,
];
const REGEX: [Code; 3] = [Code::RegexShape, Code::RegexUnknown, Code::RegexMissing];
const FIELD: [Code; 3] = [Code::FieldShape, Code::FieldUnknown, Code::FieldMissing];
const MANY: [Code; 3] = [Code::ManyShape, Code::ManyUnknown, Code::ManyMissing];
const ADDS: [Code; 3] = [
    Code::DateAddShape,
    Code::DateAddUnknown,
    Code::DateAddMissing,
];
const DIFF: [Code; 3] = [
    Code::DateDiffShape,
    Code::DateDiffUnknown,
    Code::DateDiffMissing,
];
const TRUNC: [Code; 3] = [
    Code::DateTruncShape,
    Code::DateTruncUnknown,
    Code::DateTruncMissing,
];
const TEXT: Names = &[("input", true), ("chars", false)];
const SEARCH: Names = &[("input", true), ("regex", true), ("options", false)];
const CHANGE: Names = &[("input", true), ("find", true), ("replacement", true)];
const SOME: Names = &[("n", true), ("input", true)];
const MOVE: Names = &[
    ("startDate", true),
    ("unit", true),
    ("amount", true),
    ("timezone", false),
];

/// By name.
static FUNCTIONS: &[Function] = &[
    exactly("$abs", 1, arithmetic::single),
    exactly("$acos", 1, arithmetic::single),
    exactly("$acosh", 1, arithmetic::single),
    between("$add", ANY, arithmetic::add),
    exactly("$allElementsTrue", 1, set::all_true),
    exactly("$anyElementTrue", 1, set::any_true),
    exactly("$arrayElemAt", 2, array::element_at),
    exactly("$arrayToObject", 1, array::to_object),
    exactly("$asin", 1, arithmetic::single),
    exactly("$asinh", 1, arithmetic::single),
    exactly("$atan", 1, arithmetic::single),
    exactly("$atan2", 2, arithmetic::atan2),
    exactly("$atanh", 1, arithmetic::single),
    between("$avg", ANY, array::average),
    exactly("$binarySize", 1, string::binary_size),
    between("$bitAnd", ANY, arithmetic::bits),
    exactly("$bitNot", 1, arithmetic::bit_not),
    between("$bitOr", ANY, arithmetic::bits),
    between("$bitXor", ANY, arithmetic::bits),
    exactly("$bsonSize", 1, array::bson_size),
    exactly("$ceil", 1, arithmetic::single),
    exactly("$cmp", 2, compared),
    between("$concat", ANY, string::concat),
    between("$concatArrays", ANY, array::concat),
    exactly("$cos", 1, arithmetic::single),
    exactly("$cosh", 1, arithmetic::single),
    named("$dateAdd", MOVE, ADDS, date::add),
    named(
        "$dateDiff",
        &[
            ("startDate", true),
            ("endDate", true),
            ("unit", true),
            ("timezone", false),
            ("startOfWeek", false),
        ],
        DIFF,
        date::difference,
    ),
    named(
        "$dateFromParts",
        &[
            ("year", false),
            ("isoWeekYear", false),
            ("month", false),
            ("isoWeek", false),
            ("day", false),
            ("isoDayOfWeek", false),
            ("hour", false),
            ("minute", false),
            ("second", false),
            ("millisecond", false),
            ("timezone", false),
        ],
        [Code::PartsShape, Code::PartsUnknown, Code::PartsMissing],
        date::from_parts,
    ),
    named(
        "$dateFromString",
        &[
            ("dateString", true),
            ("format", false),
            ("timezone", false),
            ("onError", false),
            ("onNull", false),
        ],
        [
            Code::DateTextShape,
            Code::DateTextUnknown,
            Code::DateTextMissing,
        ],
        date::from_string,
    ),
    named("$dateSubtract", MOVE, ADDS, date::add),
    named(
        "$dateToParts",
        &[("date", true), ("timezone", false), ("iso8601", false)],
        [
            Code::ToPartsShape,
            Code::ToPartsUnknown,
            Code::ToPartsMissing,
        ],
        date::to_parts,
    ),
    named(
        "$dateToString",
        &[
            ("date", true),
            ("format", false),
            ("timezone", false),
            ("onNull", false),
        ],
        [Code::ToTextShape, Code::ToTextUnknown, Code::ToTextMissing],
        date::to_string,
    ),
    named(
        "$dateTrunc",
        &[
            ("date", true),
            ("unit", true),
            ("binSize", false),
            ("timezone", false),
            ("startOfWeek", false),
        ],
        TRUNC,
        date::truncate,
    ),
    part("$dayOfMonth"),
    part("$dayOfWeek"),
    part("$dayOfYear"),
    exactly("$degreesToRadians", 1, arithmetic::single),
    exactly("$divide", 2, arithmetic::divide),
    exactly("$eq", 2, compared),
    exactly("$exp", 1, arithmetic::single),
    exactly("$first", 1, array::end),
    named("$firstN", SOME, MANY, array::ends),
    exactly("$floor", 1, arithmetic::single),
    Function {
        name: "$getField",
        shape: Shape::Named(&[("field", true), ("input", true)], FIELD),
        run: array::get_field,
    },
    exactly("$gt", 2, compared),
    exactly("$gte", 2, compared),
    part("$hour"),
    exactly("$in", 2, array::contains),
    between("$indexOfArray", (2, 4), array::index_of),
    between("$indexOfBytes", (2, 4), string::index_of),
    between("$indexOfCP", (2, 4), string::index_of),
    exactly("$isArray", 1, array::is_array),
    exactly("$isNumber", 1, convert::is_number),
    part("$isoDayOfWeek"),
    part("$isoWeek"),
    part("$isoWeekYear"),
    exactly("$last", 1, array::end),
    named("$lastN", SOME, MANY, array::ends),
    exactly("$ln", 1, arithmetic::single),
    exactly("$log", 2, arithmetic::log),
    exactly("$log10", 1, arithmetic::single),
    exactly("$lt", 2, compared),
    exactly("$lte", 2, compared),
    named("$ltrim", TEXT, TRIM, string::trim),
    between("$max", ANY, array::extreme),
    named("$maxN", SOME, MANY, array::extremes),
    between("$mergeObjects", ANY, array::merge),
    part("$millisecond"),
    between("$min", ANY, array::extreme),
    named("$minN", SOME, MANY, array::extremes),
    part("$minute"),
    exactly("$mod", 2, arithmetic::modulus),
    part("$month"),
    between("$multiply", ANY, arithmetic::multiply),
    exactly("$ne", 2, compared),
    exactly("$not", 1, not),
    exactly("$objectToArray", 1, array::of_object),
    exactly("$pow", 2, arithmetic::power),
    exactly("$radiansToDegrees", 1, arithmetic::single),
    between("$range", (2, 3), array::range),
    named("$regexFind", SEARCH, REGEX, text_search::find),
    named("$regexFindAll", SEARCH, REGEX, text_search::find_all),
    named("$regexMatch", SEARCH, REGEX, text_search::is_match),
    named("$replaceAll", CHANGE, REPLACE, string::replace),
    named("$replaceOne", CHANGE, REPLACE, string::replace),
    exactly("$reverseArray", 1, array::reverse),
    between("$round", (1, 2), arithmetic::round),
    named("$rtrim", TEXT, TRIM, string::trim),
    part("$second"),
    between("$setDifference", (2, 2), set::difference),
    between("$setEquals", (2, usize::MAX), set::equal),
    named(
        "$setField",
        &[("field", true), ("input", true), ("value", true)],
        FIELD,
        array::set_field,
    ),
    between("$setIntersection", ANY, set::intersection),
    exactly("$setIsSubset", 2, set::is_subset),
    between("$setUnion", ANY, set::union),
    exactly("$sin", 1, arithmetic::single),
    exactly("$sinh", 1, arithmetic::single),
    exactly("$size", 1, array::size),
    between("$slice", (2, 3), array::slice),
    between("$split", (2, 2), string::split),
    exactly("$sqrt", 1, arithmetic::single),
    between("$stdDevPop", ANY, array::deviation),
    between("$stdDevSamp", ANY, array::deviation),
    exactly("$strLenBytes", 1, string::length),
    exactly("$strLenCP", 1, string::length),
    exactly("$strcasecmp", 2, string::compare_case),
    exactly("$substr", 3, string::part_of_bytes),
    exactly("$substrBytes", 3, string::part_of_bytes),
    exactly("$substrCP", 3, string::part_of_characters),
    exactly("$subtract", 2, arithmetic::subtract),
    between("$sum", ANY, array::sum),
    exactly("$tan", 1, arithmetic::single),
    exactly("$tanh", 1, arithmetic::single),
    exactly("$toBool", 1, convert::to),
    exactly("$toDate", 1, convert::to),
    exactly("$toDouble", 1, convert::to),
    exactly("$toInt", 1, convert::to),
    exactly("$toLong", 1, convert::to),
    exactly("$toLower", 1, string::case),
    exactly("$toObjectId", 1, convert::to),
    exactly("$toString", 1, convert::to),
    exactly("$toUpper", 1, string::case),
    named("$trim", TEXT, TRIM, string::trim),
    between("$trunc", (1, 2), arithmetic::round),
    exactly("$tsIncrement", 1, date::timestamp),
    exactly("$tsSecond", 1, date::timestamp),
    exactly("$type", 1, convert::type_of),
    named(
        "$unsetField",
        &[("field", true), ("input", true)],
        FIELD,
        array::set_field,
    ),
    part("$week"),
    part("$year"),
    named(
        "$zip",
        &[
            ("inputs", true),
            ("useLongestLength", false),
            ("defaults", false),
        ],
        [Code::ZipShape, Code::ZipUnknown, Code::ZipMissing],
        array::zip,
    ),
];

/// What is missing is below all values.
fn compared(function: &Function, arguments: Arguments<'_>) -> Made {
    let order = match arguments {
        [Some(a), Some(b)] => compare(*a, *b),
        [a, b] if drumlin_base::bug!("mongo-missing-equals-null") => {
            compare(a.unwrap_or(Value::NULL), b.unwrap_or(Value::NULL))
        }
        [a, b] => a.is_some().cmp(&b.is_some()),
        _ => Ordering::Equal,
    };
    let answer = match function.name {
        "$eq" => order.is_eq(),
        "$ne" => order.is_ne(),
        "$gt" => order.is_gt(),
        "$gte" => order.is_ge(),
        "$lt" => order.is_lt(),
        "$lte" => order.is_le(),
        _ => return Ok(Some(OwnedValue::int32(order as i32))),
    };
    flag(answer)
}

fn not(_: &Function, arguments: Arguments<'_>) -> Made {
    flag(!arguments.first().copied().flatten().is_some_and(truth))
}

#[cfg(test)]
mod tests {
    use super::FUNCTIONS;

    #[test]
    fn the_table_is_sorted() {
        for pair in FUNCTIONS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{}", pair[1].name);
        }
    }
}
