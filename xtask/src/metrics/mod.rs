//! The figures A1 to A12 of our own code, counted as those of the code bases beside it are.

mod commits;
mod pages;
pub(crate) mod source;
pub(crate) mod structure;

use self::commits::Commits;
use self::pages::Pages;
use self::source::Source;
use self::structure::Structure;
use crate::Result;
use crate::repository::Repository;

/// Sums over the files of one crate, of two, or of all.
#[derive(Default)]
struct Sums {
    name: String,
    /// Production lines of each file that has any.
    files: Vec<usize>,
    functions: Vec<usize>,
    sum: Source,
}

/// Prints the figures, and a line for each crate.
pub(crate) fn run(repository: &Repository) -> Result<()> {
    let all = Sums::of(repository, "all", &["crates/"]);
    let core = Sums::of(
        repository,
        "engine+journal",
        &["crates/engine/", "crates/records/", "crates/journal/"],
    );
    println!("{}", Sums::HEAD);
    for name in crates(repository) {
        println!("{}", Sums::of(repository, &name, &[&format!("crates/{name}/")]).row());
    }
    println!("{}", core.row());
    println!("{}", Sums::of(repository, "xtask", &["xtask/"]).row());
    println!("{}\n", all.row());
    figures(&all, &core);
    let sim = Sums::of(repository, "sim", &["crates/sim/"]).sum;
    let test = all.sum.test + sim.prod;
    println!("    with the simulation as a test {:.2}", ratio(test, all.sum.prod - sim.prod));
    dependencies(repository);
    Commits::read(repository)?.print();
    Pages::of(repository).print();
    Structure::of(repository).print();
    let (leftovers, wide) = (per_kloc(all.sum.leftovers, &all), all.sum.wide);
    println!(
        "A12 notes for later per KLOC {leftovers:.1} (at most .5), lines over 100 columns {wide}"
    );
    Ok(())
}

fn figures(all: &Sums, core: &Sums) {
    let prod = all.sum.prod.max(1);
    let in_long = |limit| all.files.iter().filter(|lines| **lines > limit).sum::<usize>();
    let long: usize = all.functions.iter().filter(|lines| **lines > 70).sum();
    let function_lines = all.functions.iter().sum::<usize>().max(1);
    println!("A1  lines in functions over 70 lines {} % (at most 10)", long * 100 / function_lines);
    println!(
        "A2  lines in files over 1,500 / 1,000 lines {} % / {} % (at most 0 / 10)",
        in_long(1500) * 100 / prod,
        in_long(1000) * 100 / prod
    );
    let (median, p90) = (quantile(&all.functions, 50), quantile(&all.functions, 90));
    println!("A3  function median / p90 {median} / {p90} lines (at most 8 / 30)");
    println!("A4  file median {} lines (100 to 300)", quantile(&all.files, 50));
    let (public, documented) = all.sum.public;
    println!("A5  public items documented {} % (at least 90)", documented * 100 / public.max(1));
    println!("A6  comment/code {:.2} (.20 to .40)", ratio(all.sum.comments, all.sum.code));
    println!("A7  unwrap/expect per KLOC {:.1} (at most 3)", per_kloc(all.sum.unwraps, all));
    println!(
        "A8  asserts per KLOC, engine+journal {:.1} (at least 30)",
        per_kloc(core.sum.asserts, core)
    );
    println!(
        "A9  test/production {:.2}, engine+journal {:.2} (at least .6, 1.0)",
        ratio(all.sum.test, all.sum.prod),
        ratio(core.sum.test, core.sum.prod)
    );
}

/// The server's direct dependencies that are not ours, and the packages of the lock file.
fn dependencies(repository: &Repository) {
    let manifest = repository.under("crates/server/Cargo.toml", "").next();
    let mut section = "";
    let mut direct = 0;
    for line in manifest.map(|file| file.text.as_str()).unwrap_or_default().lines() {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]" && line.contains('=') {
            direct += usize::from(!line.starts_with("dunlin-"));
        }
    }
    let lock = repository.under("Cargo.lock", "").next();
    let packages = lock.map_or(0, |file| file.text.matches("[[package]]").count());
    println!("A10 server's direct dependencies {direct}, lock {packages} (at most 12, 120)");
}

fn crates(repository: &Repository) -> Vec<String> {
    let manifests = repository.under("crates/", "/Cargo.toml");
    manifests.filter_map(|file| file.path.split('/').nth(1)).map(str::to_owned).collect()
}

impl Sums {
    const HEAD: &str = "crate            prod  test  files  file-median  fn-median/p90/max  \
                        comments  documented  unwraps/K  asserts/K";

    fn of(repository: &Repository, name: &str, folders: &[&str]) -> Sums {
        let mut sums = Sums { name: name.to_owned(), ..Sums::default() };
        for folder in folders {
            repository.under(folder, ".rs").for_each(|file| sums.add(Source::of(file)));
        }
        sums.files.sort_unstable();
        sums.functions.sort_unstable();
        sums
    }

    fn add(&mut self, source: Source) {
        if source.prod > 0 {
            self.files.push(source.prod);
        }
        self.functions.extend(source.functions.iter().map(|function| function.lines));
        let sum = &mut self.sum;
        sum.prod += source.prod;
        sum.test += source.test;
        sum.code += source.code;
        sum.comments += source.comments;
        sum.public.0 += source.public.0;
        sum.public.1 += source.public.1;
        sum.unwraps += source.unwraps;
        sum.asserts += source.asserts;
        sum.wide += source.wide;
        sum.leftovers += source.leftovers;
    }

    fn row(&self) -> String {
        let Sums { name, files, functions, sum } = self;
        let length = |percent| quantile(functions, percent);
        format!(
            "{name:15} {:5} {:5} {:6} {:12} {:>18} {:9.2} {:9} % {:10.1} {:10.1}",
            sum.prod,
            sum.test,
            files.len(),
            quantile(files, 50),
            format!("{}/{}/{}", length(50), length(90), length(100)),
            ratio(sum.comments, sum.code),
            sum.public.1 * 100 / sum.public.0.max(1),
            per_kloc(sum.unwraps, self),
            per_kloc(sum.asserts, self),
        )
    }
}

/// The value below which `percent` of the sorted `values` lie; 0 of none.
fn quantile(values: &[usize], percent: usize) -> usize {
    let index = (values.len() * percent / 100).min(values.len().saturating_sub(1));
    values.get(index).copied().unwrap_or(0)
}

fn ratio(a: usize, b: usize) -> f64 {
    a as f64 / b.max(1) as f64
}

fn per_kloc(count: usize, sums: &Sums) -> f64 {
    ratio(count * 1000, sums.sum.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_and_none() {
        assert_eq!(quantile(&[], 50), 0);
        assert_eq!(quantile(&[1, 2, 3, 4, 100], 50), 3);
        assert_eq!(quantile(&[1, 2, 3, 4, 100], 100), 100);
    }

    #[test]
    fn crates_are_counted() {
        let repository = Repository::read().expect("a git checkout");
        let all = Sums::of(&repository, "all", &["crates/"]);
        let each = crates(&repository).into_iter();
        let sum: usize = each
            .map(|name| Sums::of(&repository, &name, &[&format!("crates/{name}/")]).sum.prod)
            .sum();
        assert_eq!(all.sum.prod, sum);
    }
}
