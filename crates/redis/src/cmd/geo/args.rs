//! Arguments and replies that commands of places have in common.

use drumlin_redis_store::types::geo::{LATITUDE_MAX, LONGITUDE_MAX, Point};
use drumlin_redis_store::{Failure, Outcome};

use crate::call::Call;
use crate::double;

const NOT_A_FLOAT: Failure = Failure::refused("ERR value is not a valid float");

/// Arguments `at` and the next as a place.
pub(super) fn point(call: &Call<'_, '_>, at: usize) -> Outcome<Point> {
    let longitude = double::parse(call.arg(at)).ok_or(NOT_A_FLOAT)?;
    let latitude = double::parse(call.arg(at + 1)).ok_or(NOT_A_FLOAT)?;
    if longitude.abs() > LONGITUDE_MAX || latitude.abs() > LATITUDE_MAX {
        return Err(Failure::because(format!(
            "ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}"
        )));
    }
    Ok(Point {
        longitude,
        latitude,
    })
}

/// Metres of the unit that is argument `at`.
pub(super) fn unit_m(call: &Call<'_, '_>, at: usize) -> Outcome<f64> {
    match () {
        () if call.is(at, "m") => Ok(1.0),
        () if call.is(at, "km") => Ok(1_000.0),
        () if call.is(at, "ft") => Ok(0.3048),
        () if call.is(at, "mi") => Ok(1_609.34),
        () => Err(Failure::refused(
            "ERR unsupported unit provided. please use M, KM, FT, MI",
        )),
    }
}

/// Argument `at` as a length; `error` if it is no number.
pub(super) fn length(call: &Call<'_, '_>, at: usize, error: &'static str) -> Outcome<f64> {
    double::parse(call.arg(at)).ok_or(Failure::refused(error))
}

/// Replies a place.
pub(super) fn reply_point(call: &mut Call<'_, '_>, point: Point) {
    call.reply.array(2);
    for degrees in [point.longitude, point.latitude] {
        let text = format!("{degrees:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let text = if text == "-0" { "0" } else { text };
        call.reply.double(text.as_bytes());
    }
}

/// Replies a distance with four decimals, rounded to even.
pub(super) fn reply_distance(call: &mut Call<'_, '_>, distance: f64) {
    let scaled = (distance * 10_000.0).round_ties_even() as i64;
    let size = scaled.unsigned_abs();
    let sign = if scaled < 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:04}", size / 10_000, size % 10_000);
    call.reply.bulk(text.as_bytes());
}
