#!/bin/sh
# Unpacks documentation packages of Debian into a directory, for the data set of English records:
#
#   crates/bench/english.sh /data/english
#   drumlin gen english --docs /data/english --bytes 2GB --out english.tsv
#
# Nothing is installed: packages are downloaded by apt-get (run `apt-get update` before) and unpacked by
# dpkg-deb, so it works for any user of Debian 12 or 13. About 0.8 GB come over the network; what stays is text,
# HTML, manual pages and dictionaries, 4 to 5 GB. A package is removed as soon as it is unpacked, and one that
# was unpacked before is left as it is: run it again after a failure. Packages that cannot be had are named at
# the end; the data set is smaller and a little different without them.
#
# The packages are those of a few hundred with much text that gave most prose for their size. PACKAGES names
# others; of `a|b` the first that this release has is taken.
set -eu
dir=${1:?which directory?}
PACKAGES=${PACKAGES:-"abs-guide allegro5-doc anarchism angelscript-doc ant-doc apache2-doc autoconf-doc bacula-doc bash-doc borgbackup-doc
brz-doc buildbot-doc cbflib-doc cinder-doc clang-19-doc clisp-doc cmake-doc dar-docs db5.3-doc dbus-1-doc
debian-policy debian-reference-en derby-doc developers-reference dict-foldoc dict-gcide dict-jargon dict-wn
docutils-doc dpdk-doc dx-doc efl-doc emscripten-doc erlang-doc evolution-data-server-doc evolver-doc exim4-doc-info
fastjet-doc ffmpeg-doc fltk1.3-doc fontforge-doc fp-docs-3.2.2 freebsd-manpages frr-doc ganeti-doc gap-doc
geographiclib-doc gettext-doc giac-doc git-doc glance-doc gnome-devel-docs gnuplot-doc gnustep-base-doc
gnustep-gui-doc gradle-doc harden-doc heat-doc icu-doc imagemagick-6-doc|imagemagick-7-doc ironic-doc janus-doc
kea-doc keystone-doc kitty-doc krb5-doc lava-server-doc lazarus-doc-2.2|lazarus-doc-4.0 lemonldap-ng-doc
libags-audio-doc libaom-doc libapache2-mod-perl2-doc libboost1.81-doc|libboost1.83-doc libcastor-java-doc
libcommons-collections4-java-doc libcommons-lang3-java-doc libcommons-math-java-doc libcommons-math3-java-doc
libflint-doc libgimp2.0-doc libglib2.0-doc libglibmm-2.68-doc libgstreamermm-1.0-doc libgtk-3-doc libgtk-4-doc
libgwyddion20-doc libhtsjdk-java-doc libjackson-json-java-doc libjcsp-java-doc libjibx1.2-java-doc
libjide-oss-java-doc libjts-java-doc libjuce-doc liblemon-doc libmysql++-doc libopenjfx-java-doc libopenshot-audio-doc
libqscintilla2-doc libreoffice-help-en-us libsaxonb-java-doc libstarlink-ast-doc libsvn-doc libswingx-java-doc
libtelepathy-glib-doc libvlfeat-doc libx11-doc libxerces-c-doc libxerces2-java-doc linux-doc-6.1|linux-doc-6.12
llvm-19-doc lomiri-ui-toolkit-doc lp-solve-doc mailman3-doc manila-doc manpages manpages-dev maxima-doc mh-book
mit-scheme-doc mplayer-doc netcdf-doc nim-doc nodejs-doc nova-doc numba-doc octave-doc octavia-doc ogre-1.12-doc
openafs-doc openjdk-17-doc|openjdk-21-doc openmpi-doc openvswitch-doc perl-doc pike8.0-doc postfix-doc
postgresql-doc-15|postgresql-doc-17 proftpd-doc pypy3-doc python-ase-doc python-astropy-doc python-astroquery-doc
python-asyncssh-doc python-brian-doc python-celery-doc python-dask-doc python-discord-doc python-distributed-doc
python-django-doc python-gevent-doc python-hypothesis-doc python-lxml-doc python-mdanalysis-doc python-nibabel-doc
python-nipy-doc python-nipype-doc python-openstacksdk-doc python-pygame-doc python-pymatgen-doc python-pymongo-doc
python-pytest-doc python-pyvmomi-doc python-scipy-doc python-scrapy-doc python-skbio-doc python-sklearn-doc
python-sqlalchemy-doc python-sympy-doc python-tornado-doc python3-aioxmpp-doc python3.11-doc|python3.13-doc
qt3d5-doc-html qtbase5-doc-html qtdeclarative5-doc-html qtlocation5-doc-html qtmultimedia5-doc-html qttools5-doc-html
racket-doc rsyslog-doc senlin-doc shorewall-doc slurm-wlm-doc sofia-sip-doc sphinx-doc sqlite3-doc
starlink-ttools-java-doc stilts-doc swi-prolog-doc swift-doc systemtap-doc tcl8.6-doc telepathy-specification
tomcat10-docs translate-toolkit-doc twisted-doc uima-doc varnish-doc wcslib-doc wx3.2-doc xapian-doc xen-doc xonsh-doc
zsh-doc"}

# Moves the text of the package unpacked in $1 to $2.
keep_text() {
    find "$1" -type f -name '*.gz' -exec gunzip -f {} + 2>/dev/null || true
    # Dictionaries are gzip files with an index inside.
    find "$1" -type f -name '*.dict.dz' | while read -r file; do gzip -dc "$file" >"${file%.dz}"; done
    mkdir -p "$2.part"
    # The sources of a page beside it are the same text with more markup.
    (cd "$1" && find . -type f ! -path '*/_sources/*' \( -name '*.html' -o -name '*.htm' -o -name '*.xhtml' -o -name '*.page' \
        -o -name '*.docbook' -o -name '*.txt' -o -name '*.rst' -o -name '*.md' -o -name '*.adoc' -o -name '*.info' \
        -o -name '*.dict' -o -name '*.pod' -o -path '*/man/man*' \) -print0 | tar -c --null -T -) | tar -x -C "$2.part"
    mv "$2.part" "$2"
}

mkdir -p "$dir/.unpack"
cd "$dir/.unpack"
missing=
for choice in $PACKAGES; do
    found=
    for package in $(echo "$choice" | tr '|' ' '); do
        if [ -d "../$package" ]; then
            found=$package
            break
        fi
        ls "$package"_*.deb >/dev/null 2>&1 || apt-get -qq download "$package" >/dev/null 2>&1 || continue
        rm -rf unpacked "../$package.part"
        dpkg-deb -x "$package"_*.deb unpacked
        keep_text unpacked "../$package"
        rm -rf unpacked "$package"_*.deb
        found=$package
        break
    done
    [ -n "$found" ] || missing="$missing $choice"
done
cd ..
rm -rf .unpack
echo "$(find . -mindepth 1 -maxdepth 1 -type d | wc -l) packages, $(du -sm . | cut -f1) MB of text in $dir"
[ -z "$missing" ] || echo "not to be had here (release, sources, or no \`apt-get update\`):$missing" >&2
