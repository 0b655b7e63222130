#!/usr/bin/env bash
# Measures everything that only a GPU can show, in at most nine minutes, on a machine without a network. See perf/README.md.
#
#   perf/gpu.sh collect [PYTHON-VERSION]    where there is a network: fill build/gpu-carried for the Python there (3.12)
#   perf/gpu.sh [--out FOLDER]              on the machine with the GPU: measure, and write FOLDER (build/gpu)
#   perf/gpu.sh --dry-run [--out FOLDER]    the same way on a CPU with small shapes, in a minute; the figures mean nothing
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
unset PYTHONDONTWRITEBYTECODE  # many processes import the same files
carried=$root/build/gpu-carried
python=${PYTHON:-$root/.venv/bin/python}
command -v "$python" > /dev/null || python=python3

# The machine has the packages THERE of perf/gpu.py, which are too large to be carried. Without Numba or OpenCV a few
# tests are skipped. So are those of faster-whisper: CTranslate2 alone has 43 MB.
wheels=(
    anyio attrs av certifi donfig filelock ftfy google-crc32c h11 httpcore httpx hypothesis idna jsonschema
    jsonschema-specifications more-itertools numcodecs open-clip-torch psutil referencing rpds-py sortedcontainers
    tiktoken wcwidth zarr
)
sources=(openai-whisper)  # without wheels on PyPI
most_mb=50

if [ "${1-}" = collect ]; then
    new=$carried.new
    rm -rf "$carried" "$new"
    mkdir -p "$new/wheels"
    platforms=()
    for each in manylinux_2_28 manylinux_2_27 manylinux_2_24 manylinux_2_17 manylinux2014 manylinux1; do
        platforms+=(--platform "${each}_x86_64")
    done
    "$python" -m pip download --quiet --no-deps --only-binary :all: --constraint "$root/constraints.txt" \
        --python-version "${2-3.12}" --implementation cp "${platforms[@]}" --dest "$new/wheels" "${wheels[@]}"
    "$python" -m pip wheel --quiet --no-deps --constraint "$root/constraints.txt" --wheel-dir "$new/wheels" "${sources[@]}"
    "$python" - "$new"/wheels/*.whl << 'END'  # a quarter smaller; pip reads wheels with any compression of zipfile
import os, sys, zipfile
for path in sys.argv[1:]:
    with zipfile.ZipFile(path) as wheel, zipfile.ZipFile(f"{path}.new", "w", zipfile.ZIP_LZMA) as smaller:
        for name in wheel.namelist():
            smaller.writestr(name, wheel.read(name))
    os.replace(f"{path}.new", path)
END
    "$python" "$root/perf/gpu_clips.py" "$new"
    mb=$(du --summarize --block-size=MB "$new" | cut -f 1)
    [ "${mb%MB}" -le "$most_mb" ] || { echo "$new has $mb, more than the $most_mb MB that may be carried" >&2; exit 1; }
    mv "$new" "$carried"
    echo "$carried: $mb"
    exit
fi

if ! "$python" -c "import stepline" 2> /dev/null; then
    [ -d "$carried" ] || { echo "run perf/gpu.sh collect where there is a network, and bring $carried here" >&2; exit 1; }
    site=$(mktemp --directory)
    trap 'rm -rf "$site"' EXIT
    "$python" -m pip install --quiet --no-index --no-deps --target "$site" "$carried"/wheels/*.whl
    export PYTHONPATH=$site:$root/src
fi
"$python" "$root/perf/gpu.py" "$@"
