// The one command line that runs scripts: it takes the program that watches over a script, and the script, from its first line of input.
// No part of it comes from a model; what it reads was decided about by the guard that hands it out.

const PYTHON = 'import sys,json;p=json.loads(sys.stdin.buffer.readline());exec(p["python"],{"p":p})';

const NODE = [
  'let b="";process.stdin.setEncoding("utf8");',
  'const f=(d)=>{b+=d;const i=b.indexOf("\\n");if(i<0)return;process.stdin.off("data",f);',
  'const p=JSON.parse(b.slice(0,i));new Function("p","rest","require",p.javascript)(p,b.slice(i+1),require)};',
  'process.stdin.on("data",f)',
].join("");

export const CODE_RUNNER = [
  `if command -v python3 >/dev/null 2>&1; then exec python3 -I -u -c '${PYTHON}'; fi`,
  `if command -v node >/dev/null 2>&1; then exec node -e '${NODE}'; fi`,
  "echo 'neither python3 nor node was found' >&2; exit 127",
].join("\n");
