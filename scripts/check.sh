#!/usr/bin/env bash
# Everything that must hold besides the tests: form, lints, documentation, and a few rules of the house.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_INCREMENTAL=0

# A minimal installation of Rust lacks these two.
for component in rustfmt clippy; do
    command -v "cargo-${component/rust/}" >/dev/null 2>&1 || rustup component add "$component"
done

# Files of the repository; the checkout may belong to another user, as it does in a container.
files() { git -c safe.directory="$PWD" ls-files -z -- "$@"; }

longest_file_lines=600

no_overlong_files() {
    local path lines bad=0
    while IFS= read -r -d '' path; do
        [ -f "$path" ] || continue
        lines=$(wc -l <"$path")
        if [ "$lines" -gt "$longest_file_lines" ]; then
            echo "$path has $lines lines; split it (at most $longest_file_lines)"
            bad=1
        fi
    done < <(files '*.rs' '*.sql' '*.sh' '.ci/run')
    return "$bad"
}

# A path of somebody's machine in a file works nowhere else.
no_machine_paths() {
    ! files ':!scripts/check.sh' | xargs -0 grep -nIE '(^|[^[:alnum:]_.~-])/(home|root|Users|work)/' --
}

no_debris() {
    ! files '*.rs' | xargs -0 grep -nE '\b(TODO|FIXME|XXX|HACK)\b' --
}

failures=0
step() {
    echo
    echo "== $1"
    shift
    "$@" || failures=$((failures + 1))
}

step "files of at most $longest_file_lines lines" no_overlong_files
step "no absolute paths of a machine" no_machine_paths
step "no unfinished business in comments" no_debris
step "formatting" cargo fmt --all --check
step "lints" cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --all-features --no-deps

echo
if [ "$failures" -gt 0 ]; then
    echo "$failures checks failed"
    exit 1
fi
echo "all checks passed"
