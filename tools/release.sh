#!/bin/sh
# Makes a release in dist/: wheels, source archive, the context of the image, the list of packages, notes and checksums.
# `build` makes them, and sees that the wheel of the source archive is the wheel of the tree, byte for byte. `check`
# installs each wheel into a fresh environment, as somebody does who has nothing of ours, and runs it.
set -eu

step=${1:?usage: tools/release.sh build|check [FOLDER]}
dist=$(realpath -m "${2:-dist}")
python=${PYTHON:-$PWD/.venv/bin/python}
version=$("$python" -c 'from vskill_core.release import __version__ as v; print(v)')
# One moment for everything, so that the same commit gives the same bytes.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf '%s\n' "release: $*"; }

make_wheel() {
    (cd "$1" && "$python" -m hatchling build --target wheel -d "$2") >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

build() {
    rm -rf "$dist"
    make_wheel . "$dist"
    make_wheel packages/client "$dist"
    make_wheel packages/scan "$dist"
    "$python" -m hatchling build --target sdist -d "$dist" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    tar -xzf "$dist/vskill_platform-$version.tar.gz" -C "$work"
    make_wheel "$work/vskill_platform-$version" "$work"
    cmp "$dist/vskill_platform-$version-py3-none-any.whl" "$work/vskill_platform-$version-py3-none-any.whl"
    say "the wheel of the source archive is the wheel of the tree"

    image=$work/vskill-platform-image-$version
    mkdir "$image"
    cp deploy/Containerfile deploy/engines.lock deploy/compose.yaml deploy/nats.conf requirements.lock \
        "$dist/vskill_platform-$version-py3-none-any.whl" "$image"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw --mtime="@$SOURCE_DATE_EPOCH" \
        -cf "$work/image.tar" "${image##*/}"
    gzip -n <"$work/image.tar" >"$dist/${image##*/}.tar.gz"

    "$python" -m tools.sbom >/dev/null
    cp build/sbom.cdx.json "$dist/vskill-platform-$version.cdx.json"
    cp requirements.lock deploy/systemd/vskill-platform.service "$dist"
    # The newest heading of the changelog and what stands below it.
    awk '/^## / { n++ } n == 1' CHANGELOG.md >"$dist/notes-$version.md"
    (cd "$dist" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
    say "$dist holds"
    (cd "$dist" && wc -c -- * | sed 's/^/release:   /')
}

install() {
    into=$work/$1/bin/python
    shift
    "$python" -m pip --python "$into" --disable-pip-version-check install --quiet --no-input --no-compile "$@"
}

check() {
    (cd "$dist" && sha256sum --quiet --check SHA256SUMS)
    say "every checksum is right"
    printf -- '---\nname: tidy\ndescription: Sorts files.\n---\n# Tidy\n' >"$work/SKILL.md"
    for name in client scan platform; do
        "$python" -m venv --without-pip "$work/$name"
        wheel=$dist/vskill_$name-$version-py3-none-any.whl
        if [ "$name" = platform ]; then
            install platform --require-hashes -r "$dist/requirements.lock"
            install platform --no-deps "$wheel"
        else
            install "$name" "$wheel"
        fi
        count=$("$python" -m pip --python "$work/$name/bin/python" --disable-pip-version-check list --format=freeze | wc -l)
        say "$name: $count packages, $(du -sm "$work/$name/lib" | cut -f1) MB"
    done
    (
        cd "$work" && client/bin/vskill-client --version \
            && mkdir tidy && mv SKILL.md tidy && scan/bin/vskill-scan tidy \
            && VSKILL_DATA_DIR=$work/data platform/bin/vskill-platform doctor \
            && platform/bin/python -I -c "from vskill_platform.web.documents import DOCUMENTS; assert 'docs/quickstart.md' in DOCUMENTS"
    ) >"$work/told" || { cat "$work/told"; say "a part does not run"; exit 1; }
    sed 's/^/release:   /' "$work/told"
    say "$version is ready: tag it v$version, and give people what is in $dist"
}

"$step"
