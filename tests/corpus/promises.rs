//! What the fuzz targets promise, held for each seed and for each input that once broke it.

use libtest_mimic::{Failed, Trial};

#[path = "../../fuzz/src/lib.rs"]
#[expect(
    unreachable_pub,
    reason = "the fuzz targets see it as a crate of its own"
)]
pub(crate) mod fuzz;

/// One test a promise: its seeds, and the files of `fuzz/findings/PROMISE`.
pub(crate) fn trials() -> Vec<Trial> {
    fuzz::PROMISES
        .iter()
        .map(|(name, promise)| {
            Trial::test(format!("promise::{name}"), move || {
                let inputs = inputs(name)?;
                if inputs.is_empty() {
                    return Err("it has no seed".into());
                }
                for (name, input) in inputs {
                    std::panic::catch_unwind(|| promise(&input))
                        .map_err(|_| Failed::from(format!("broken by {name}")))?;
                }
                Ok(())
            })
        })
        .collect()
}

fn inputs(promise: &str) -> Result<Vec<(String, Vec<u8>)>, Failed> {
    let root = super::root();
    let seeds = fuzz::seeds(&root).map_err(|error| error.to_string())?;
    let mut inputs: Vec<(String, Vec<u8>)> = seeds
        .into_iter()
        .filter(|seed| seed.promise == promise)
        .map(|fuzz::Seed { name, bytes, .. }| (name, bytes))
        .collect();
    if let Ok(found) = std::fs::read_dir(root.join("fuzz/findings").join(promise)) {
        for entry in found {
            let path = entry?.path();
            inputs.push((path.display().to_string(), std::fs::read(path)?));
        }
    }
    Ok(inputs)
}
