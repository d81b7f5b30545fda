"""The style sheet of the page, and the colours of its charts in both schemes.

The palette is that of Okabe and Ito (2008), which people with any of the common colour-vision deficiencies can tell
apart. A chart is drawn once, in the light scheme; the sheet replaces its colours in the dark one by attribute.
"""

from collections.abc import Mapping
from typing import Final

INK: Final = "#1f2328"
QUIET: Final = "#59636e"
GRID: Final = "#e3e7eb"
RULE: Final = "#8c959f"

BLUE: Final = "#0072b2"
ORANGE: Final = "#d55e00"
GREEN: Final = "#009e73"
YELLOW: Final = "#e69f00"
PURPLE: Final = "#cc79a7"
SKY: Final = "#56b4e9"
GRAY: Final = "#9aa4ae"

_IN_THE_DARK: Final[Mapping[str, str]] = {
    INK: "#e6edf3",
    QUIET: "#9da7b1",
    GRID: "#2a313a",
    RULE: "#6b7682",
    BLUE: "#4aa3df",
    ORANGE: "#f0883e",
    GREEN: "#2fc39a",
    GRAY: "#7d8791",
}
"""Only those that would be too dark on a dark page."""

_DARK_CHARTS: Final = "".join(
    f'.chart svg [{part}="{light}"]{{{part}:{dark}}}'
    for light, dark in _IN_THE_DARK.items()
    for part in ("fill", "stroke")
)

STYLE: Final = (
    """
:root{color-scheme:light dark;--page:#ffffff;--panel:#f6f8fa;--ink:#1f2328;--quiet:#59636e;--line:#d1d9e0;
--accent:#0b5cad;--good:#116329;--bad:#b3261e;--bad-page:#fdf0ee;--warn:#7a4b00;--warn-page:#fff8e6;--warn-line:#e5b94a}
@media (prefers-color-scheme:dark){:root{--page:#0f1419;--panel:#171d24;--ink:#e6edf3;--quiet:#9da7b1;--line:#313942;
--accent:#6cb6ff;--good:#56d08a;--bad:#ff8f85;--bad-page:#2b1715;--warn:#f0c766;--warn-page:#251d0a;--warn-line:#7a5d15}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Liberation Sans",sans-serif}
main{max-width:66rem;margin:0 auto;padding:2.5rem 1.5rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .4rem;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:1.3rem;line-height:1.3;margin:3rem 0 1rem;padding-top:1.2rem;border-top:1px solid var(--line)}
h3{font-size:1rem;line-height:1.4;margin:0 0 .3rem}
p{margin:.6rem 0;max-width:46rem;overflow-wrap:anywhere}
a{color:var(--accent)}
.subtitle{color:var(--quiet);font-size:1.02rem;margin:0 0 1.2rem}
.quiet{color:var(--quiet)}.good{color:var(--good)}.bad{color:var(--bad)}.strong,p.bad{font-weight:600}
p.quiet{font-size:.9rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:0 0 1.5rem;padding:0;font-size:.93rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(13.5rem,1fr));gap:.75rem;margin:1.2rem 0 1.6rem}
.figure{background:var(--panel);border:1px solid var(--line);border-radius:.5rem;padding:.8rem 1rem;color:var(--ink)}
.figure dt{color:var(--quiet);font-size:.88rem;line-height:1.35}
.figure dd{margin:.15rem 0 0;font-size:1.5rem;line-height:1.25;font-weight:600;font-variant-numeric:tabular-nums;
overflow-wrap:anywhere}
.figure dd.note{font-size:.86rem;line-height:1.4;font-weight:400;color:var(--quiet);margin-top:.3rem}
.figure.good dd:not(.note){color:var(--good)}.figure.bad dd:not(.note){color:var(--bad)}
.figure.bad{background:var(--bad-page)}
.scroll{overflow-x:auto;margin:1.2rem 0 1.6rem;border-radius:.25rem}
.scroll:focus-visible,pre:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
table.data{border-collapse:collapse;width:100%;font-size:.92rem;line-height:1.45;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;font-size:1rem;padding:0 0 .5rem}
th,td{padding:.42rem .9rem .42rem 0;vertical-align:top;text-align:left;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{padding-left:.25rem}
thead th{font-weight:600;vertical-align:bottom;border-bottom:1.5px solid var(--quiet);line-height:1.3}
.unit{display:block;font-weight:400;color:var(--quiet);font-size:.85em}
tbody th{font-weight:500;color:var(--ink)}
td.right,th.right{text-align:right}
td.right,tbody th:not(.wraps){white-space:nowrap}
td.wraps{min-width:16rem;overflow-wrap:anywhere}
tr.total th,tr.total td{font-weight:650;border-top:1.5px solid var(--quiet)}
tr.group th{font-weight:650;padding-top:1rem}
td.good,th.good{color:var(--good)}td.bad,th.bad{color:var(--bad)}td.quiet,tbody th.quiet{color:var(--quiet)}
tbody th.good{color:var(--good)}tbody th.bad{color:var(--bad)}
td.strong{font-weight:650}
.origin{font-size:.75em;vertical-align:.25em;color:var(--quiet);text-decoration:none;cursor:help;font-weight:400;
margin-left:.05em}
.figure .origin{font-size:.6em;vertical-align:.5em}
.alerts{background:var(--warn-page);border:1px solid var(--warn-line);border-radius:.5rem;padding:.9rem 1.1rem;
margin:1.2rem 0 1.6rem}
.title{font-weight:600;margin:0 0 .3rem}
.alerts .title{color:var(--warn)}.alerts ol{margin:.3rem 0 0;padding-left:1.4rem}
.alerts li{margin:.35rem 0;
overflow-wrap:anywhere}
.remedy{color:var(--quiet)}
.notes{font-size:.88rem;color:var(--quiet);margin:1.2rem 0}.notes .title{font-size:.95rem;color:var(--ink)}
.notes ul{margin:.2rem 0 0;padding-left:1.2rem}.notes li{margin:.2rem 0;max-width:52rem;overflow-wrap:anywhere}
.legend{font-size:.88rem;color:var(--quiet);border-top:1px solid var(--line);padding-top:1rem;margin-top:2.5rem}
figure{margin:1.8rem 0 2.2rem}figcaption{margin:0 0 .8rem;max-width:46rem}
.listing figcaption{font-weight:600;margin:0 0 .5rem}
pre{background:var(--panel);border:1px solid var(--line);border-radius:.5rem;padding:.9rem 1.1rem;margin:0;
overflow-x:auto;font:.86rem/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;tab-size:2}
ins,del{text-decoration:none}ins{color:var(--good)}del{color:var(--bad)}
.chart svg{display:block;width:100%;height:auto;max-width:100%}
.narrow svg{max-width:30rem}
.narrow{display:none}
@media (max-width:40rem){
main{padding:1.4rem 1rem 3rem}h1{font-size:1.5rem}h2{margin-top:2.2rem}
.wide{display:none}.narrow{display:block}
.figures{grid-template-columns:1fr 1fr;gap:.5rem}.figure{padding:.65rem .75rem}.figure dd{font-size:1.2rem}
table.stacked,.stacked tbody,.stacked tr,.stacked th,.stacked td{display:block;width:100%}
.stacked thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.stacked caption{display:block}
.stacked tr{border-bottom:1px solid var(--line);padding:.5rem 0}
.stacked th,.stacked td{border:0;padding:.1rem 0;white-space:normal}
.stacked tbody th{font-weight:650;padding-bottom:.2rem;padding-left:0!important;white-space:normal;
overflow-wrap:anywhere}
.stacked td{display:flex;justify-content:space-between;gap:1rem;text-align:right;min-width:0}
.stacked td::before{content:attr(data-head);color:var(--quiet);text-align:left;font-weight:400;flex:0 0 auto;
max-width:55%}
.stacked td.wraps{display:block;text-align:left}.stacked td.wraps::before{display:block;max-width:none}
.stacked td.empty{display:none}
}
@media (max-width:22rem){.figures{grid-template-columns:1fr}}
@media print{
@page{margin:16mm 14mm}
:root{--page:#fff;--panel:#fff;--ink:#000;--quiet:#444;--line:#bbb;--accent:#000;--good:#0b4a1c;--bad:#8c1d18;
--bad-page:#fff;--warn:#5a3700;--warn-page:#fff}
body{font-size:10pt;line-height:1.4}main{max-width:none;padding:0}nav{display:none}
h1{font-size:18pt}h2{font-size:13pt;margin-top:1.4rem;break-after:avoid}h3,caption,figcaption{break-after:avoid}
figure.chart,.figure,.alerts,tr{break-inside:avoid}thead{display:table-header-group}
.wide{display:block}.narrow{display:none}
.scroll{overflow:visible}table.data{font-size:8.5pt}th,td{padding:.25rem .5rem .25rem 0}
pre{white-space:pre-wrap;overflow:visible}.figures{grid-template-columns:repeat(3,1fr)}
}
@media screen and (prefers-color-scheme:dark){"""
    + _DARK_CHARTS
    + "}\n"
)
