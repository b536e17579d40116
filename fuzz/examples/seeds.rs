//! Writes the seeds of every fuzz target into `corpus/TARGET`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    for seed in yiem_fuzz::seeds(fuzz.parent().unwrap_or(fuzz))? {
        let folder = fuzz.join("corpus").join(seed.promise);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("seed-{}", seed.name)), seed.bytes)?;
    }
    Ok(())
}
