//! What must survive: random use against a model, power cuts and errors at every operation, flipped
//! bits, threads, and a killed process.

#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod copies;
#[cfg(test)]
mod corruption;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod io_errors;
#[cfg(test)]
mod kill9;
#[cfg(test)]
mod model;
#[cfg(test)]
mod support;
