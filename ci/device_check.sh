#!/usr/bin/env bash
# Checks a driver on this machine, in under four minutes and without a network: probes it, then runs the suite of the
# driver itself, and the suites skip-remap and flags of the reference over it. Leaves a folder with all that was found.
#
#   ci/device_check.sh [--driver cuda] [--wheels DIR] [--report device-check] [--budget dev] [--python python3]
#
# With --wheels a fresh environment is made out of that folder, which a machine with a network fills beforehand, with
# the same Python:
#
#   pip wheel --wheel-dir DIR '.[cuda,html]'        # or hip; for an emulated driver '.[emulation,cuda,html]'
#
# Without it, the project is taken as it is installed for --python. Of a device no more memory is taken than half of what
# is free; --driver cuda,memory=8G takes less. Exit status: 0 everything holds, 1 something is broken or could not be
# judged, 2 usage, 3 there is no such driver here, or time ran out.
set -euo pipefail

usage() {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

driver=cuda wheels='' report=device-check budget=dev python=python3
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --driver) driver=$2 ;;
    --wheels) wheels=$2 ;;
    --report) report=$2 ;;
    --budget) budget=$2 ;;
    --python) python=$2 ;;
    *) usage ;;
  esac
  shift 2
done
mkdir -p "$report"

if [ -n "$wheels" ]; then
  name=${driver%%,*}
  case $name in
    host) extras=html ;;
    emulated-*) extras=emulation,${name#emulated-},html ;;
    *) extras=$name,html ;;
  esac
  environment=$(mktemp -d)
  trap 'rm -rf "$environment"' EXIT
  install=(-m pip install --quiet --disable-pip-version-check --no-index --find-links "$wheels")
  if "$python" -m venv "$environment" > "$report/install.txt" 2>&1; then
    python=$environment/bin/python
  else # a Python without ensurepip makes none
    export PYTHONPATH=$environment/packages${PYTHONPATH:+:$PYTHONPATH}
    install+=(--target "$environment/packages" --upgrade)
  fi
  "$python" "${install[@]}" "vmm-conformance[$extras]" 2>&1 | tee -a "$report/install.txt"
fi

broken=0 late=0
# step SECONDS NAME ARGUMENT...: a command of the project. When its time is over it is interrupted, and still reports.
step() {
  local seconds=$1 name=$2 status=0 begun=$SECONDS
  shift 2
  echo "== $name: vmm-conformance $*"
  timeout --signal=INT --kill-after=20 --preserve-status "$seconds" "$python" -P -m vmm_conformance.cli "$@" 2>&1 |
    tee "$report/$name.txt" || status=$?
  echo "== $name: exit status $status after $((SECONDS - begun)) s"
  case $status in
    0 | 3) ;;
    130 | 137) [ $((SECONDS - begun)) -ge "$seconds" ] || broken=1 ;; # interrupted once more, while it reported
    *) broken=1 ;;
  esac
  [ $((SECONDS - begun)) -lt "$seconds" ] || late=1
  return "$status"
}

step 50 probe probe --driver "$driver" --refusals || [ $? != 3 ] || exit 3
isolated=(--driver "$driver" --budget "$budget" --isolation process --timeout 30)
step 80 driver run --subject "$driver" "${isolated[@]}" --report "$report/driver" || true
step 60 reference run --subject reference --contract skip-remap --contract flags "${isolated[@]}" \
  --report "$report/reference" || true

"$python" -P - "$report" "$late" << 'END' | tee "$report/summary.txt" || broken=1
import json, pathlib, sys

unjudged = False
for name in ("driver", "reference"):
    file = pathlib.Path(sys.argv[1], name, "report.json")
    if not file.is_file():
        print(f"{name}: no report")
        unjudged = unjudged or sys.argv[2] == "0"
        continue
    told = json.loads(file.read_text("utf-8"))
    under, overall = told["driver"], told["overall"]
    verdicts = [(each["verdict"], each["id"]) for section in told["subjects"] for each in section["invariants"]]
    lost = [id for verdict, id in verdicts if verdict in ("unknown", "crash", "timeout")]
    if lost:
        print(f"{name}: could not be judged: {', '.join(lost)}")
        unjudged = True
    what = "a real device" if under["real"] else "no device: the driver is the host's or emulated"
    versions = ", ".join(f"{part} {version}" for part, version in under["versions"].items()) or "no versions"
    print(f"{name}: {overall} over {under['name']} ({what}; {versions})")
sys.exit(unjudged)
END
"$python" -P -m vmm_conformance.cli report "$report/driver" "$report/reference" -o "$report/index.html" > "$report/page.txt" 2>&1 ||
  cat "$report/page.txt"
echo "== ${SECONDS} s in all; everything is in $report"
[ "$broken" = 0 ] || exit 1
[ "$late" = 0 ] || exit 3
