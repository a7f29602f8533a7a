// SPDX-License-Identifier: Apache-2.0
#include "report/report_figures.h"

// Colours are chosen to stay apart for colour-blind readers (blue against orange first, after Okabe
// and Ito) and to keep a contrast of 4.5 : 1 for text on both backgrounds. Dashes tell the other
// policies apart in grey print.

namespace rudderfish {

const std::string_view kReportStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #faf9f7; --card: #ffffff; --ink: #17202a; --soft: #5a6572; --edge: #e3e1dc;
  --grid: #ebeae6; --good: #0b62c4; --bad: #b8470b; --open: #6b7280; --wash: #eef4fc;
  --shade: #17202a2e;
  --s0: #0b62c4; --s1: #c65102; --s2: #6b7280; --s3: #147a65; --s4: #7a4aa8; --s5: #8a6d00;
  --s6: #b03468; --s7: #5f5347;
  --w0: #cfe0f6; --w1: #f9d9bd; --w2: #cfeadf; --w3: #e6d6f3; --w4: #f5e8a8; --w5: #f6cfdd;
  --w6: #dcdcd6; --w7: #c9ecf2; --chip-ink: #17202a;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #0e1217; --card: #161c23; --ink: #e8ecf0; --soft: #9aa6b2; --edge: #2a323b;
    --grid: #232a32; --good: #62aefc; --bad: #ff9d57; --open: #9ca3af; --wash: #172536;
    --shade: #00000099;
    --s0: #62aefc; --s1: #ff9d57; --s2: #9ca3af; --s3: #4fc9ab; --s4: #bd9bea; --s5: #d9bd4a;
    --s6: #f28bb3; --s7: #c2b09c;
    --w0: #7fb0ea; --w1: #f0ab72; --w2: #7fcbb0; --w3: #bb98dc; --w4: #d9c25f; --w5: #e491b2;
    --w6: #b1b1aa; --w7: #7cc5d3; --chip-ink: #10161c;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 Inter, "Source Sans 3", system-ui, -apple-system, "Segoe UI", Roboto,
    "Helvetica Neue", "Liberation Sans", Arial, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 56px 32px 72px; }
.eyebrow { margin: 0 0 14px; color: var(--soft); font-size: 13px; letter-spacing: .06em;
  text-transform: uppercase; }
h1 { margin: 0; max-width: 21em; font-size: clamp(30px, 4.4vw, 52px); line-height: 1.08;
  font-weight: 700; letter-spacing: -.025em; overflow-wrap: anywhere; }
h1 .good { color: var(--good); } h1 .bad { color: var(--bad); }
.lede { max-width: 46em; margin: 20px 0 0; color: var(--soft); font-size: 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 1px;
  margin: 40px 0 0; padding: 0; list-style: none; background: var(--card);
  border: 1px solid var(--edge); border-radius: 14px; overflow: hidden; }
.tiles li { padding: 20px 22px 18px; box-shadow: 0 0 0 1px var(--edge); }
.tiles b { display: block; font-size: 30px; line-height: 1.15; font-weight: 650;
  letter-spacing: -.02em; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); font-size: 14px; line-height: 1.4; }
h2 { margin: 64px 0 0; font-size: 24px; line-height: 1.25; font-weight: 650;
  letter-spacing: -.015em; }
h2 + p, .lede { text-wrap: pretty; }
h2 + p { max-width: 46em; margin: 6px 0 0; color: var(--soft); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr));
  gap: 0 24px; }
figure { min-width: 0; margin: 24px 0 0; padding: 24px 26px 20px; background: var(--card);
  border: 1px solid var(--edge); border-radius: 14px; break-inside: avoid; }
figcaption { margin: 0 0 18px; }
figcaption b { display: block; font-size: 16px; font-weight: 650; }
figcaption span { color: var(--soft); font-size: 14px; line-height: 1.4; }
.scroll { overflow-x: auto; background:
    linear-gradient(90deg, var(--card) 24px, transparent 60px),
    linear-gradient(270deg, var(--card) 24px, transparent 60px),
    linear-gradient(90deg, var(--shade), transparent 14px),
    linear-gradient(270deg, var(--shade), transparent 14px);
  background-attachment: local, local, scroll, scroll; }
svg { display: block; width: 100%; height: auto; overflow: visible;
  font-variant-numeric: tabular-nums; }
.wide svg { min-width: 760px; }
.pair svg { max-width: 640px; }
svg text { fill: var(--ink); font-size: 13px; }
svg .tick, svg .hint, svg .axis-label { fill: var(--soft); font-size: 12px; }
svg .soft { opacity: .85; }
svg .panel-title { font-size: 17px; font-weight: 650; }
svg .layer { fill: var(--soft); }
svg .node-name { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--grid); }
.axis { stroke: var(--soft); opacity: .55; }
.zero { stroke: var(--ink); stroke-width: 1.25; }
.reference { stroke: var(--soft); stroke-dasharray: 3 4; }
.curve { fill: none; stroke: var(--c); stroke-width: 1.6; stroke-linejoin: round;
  stroke-linecap: round; }
.band { fill: var(--c); opacity: .16; stroke: none; }
.whisker { stroke: var(--c); stroke-width: 3; stroke-linecap: round; opacity: .45; }
.dot { fill: var(--c); stroke: var(--card); stroke-width: 1.5; }
.leader { stroke: var(--c); stroke-width: 1; opacity: .6; }
.s0 { --c: var(--s0); } .s1 { --c: var(--s1); } .s2 { --c: var(--s2); } .s3 { --c: var(--s3); }
.s4 { --c: var(--s4); } .s5 { --c: var(--s5); } .s6 { --c: var(--s6); } .s7 { --c: var(--s7); }
.s0 .curve { stroke-width: 3; } .s1 .curve { stroke-width: 2.4; }
.s2 .curve { stroke-dasharray: 5 4; } .s3 .curve { stroke-dasharray: 1.5 4; stroke-width: 2; }
.s4 .curve { stroke-dasharray: 9 4; } .s5 .curve { stroke-dasharray: 9 4 1.5 4; }
.s6 .curve { stroke-dasharray: 3 3; } .s7 .curve { stroke-dasharray: 14 5; }
svg .s0 .name, svg .s0 .value { fill: var(--s0); font-weight: 650; }
svg .s1 .name, svg .s1 .value { fill: var(--s1); font-weight: 650; }
.good { --c: var(--good); } .bad { --c: var(--bad); } .open { --c: var(--open); }
.bar { fill: var(--c); } svg .note { fill: var(--c); font-size: 14px; font-weight: 600; }
.target { stroke: var(--bad); stroke-dasharray: 6 4; opacity: .8; }
.load { --c: var(--soft); } .front { fill: none; stroke: var(--soft); stroke-dasharray: 4 3; }
.dominated { fill: var(--wash); } .flow { stroke: var(--s0); opacity: .26; }
.meter-busy { fill: var(--s1); } svg .row-name { font-weight: 600; }
.box { fill: var(--page); stroke: var(--edge); } .meter { fill: var(--edge); }
.meter-fill { fill: var(--soft); }
.other { --w: var(--edge); }
.pod { fill: var(--w); } svg .code { font-size: 11px; font-weight: 600; fill: var(--chip-ink); }
.leaving .pod { fill-opacity: .35; stroke: var(--soft); stroke-width: 1.2;
  stroke-dasharray: 3 2.5; }
svg .other .code { fill: var(--soft); }
svg .leaving .code { fill: var(--ink); }
.arrived .pod { stroke: var(--ink); stroke-width: 1.8; }
.badge { fill: var(--ink); }
svg .badge-text { fill: var(--card); font-size: 9.5px; font-weight: 700; }
.w0 { --w: var(--w0); } .w1 { --w: var(--w1); } .w2 { --w: var(--w2); } .w3 { --w: var(--w3); }
.w4 { --w: var(--w4); } .w5 { --w: var(--w5); } .w6 { --w: var(--w6); } .w7 { --w: var(--w7); }
table { width: 100%; border-collapse: collapse; font-size: 14px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 8px 10px; border-bottom: 1px solid var(--edge); text-align: right;
  white-space: nowrap; }
th { color: var(--soft); font-weight: 500; vertical-align: bottom; }
thead th { white-space: normal; }
th:first-child, td:first-child, .left { text-align: left; }
tbody th { color: var(--ink); font-weight: 600; }
tr.part th, tr.part td { color: var(--soft); font-weight: 400; border-bottom-color: transparent;
  padding: 3px 10px; }
tr.part th { padding-left: 28px; }
tr.part.last th, tr.part.last td { border-bottom-color: var(--edge); padding-bottom: 9px; }
tr.whole th, tr.whole td { border-bottom-color: transparent; padding-bottom: 3px; }
tr.candidate th, tr.candidate td { background: var(--wash); }
.verdict { color: var(--c); white-space: nowrap; } td.words { white-space: normal; width: 100%; }
.verdicts th, .verdicts td { vertical-align: baseline; }
.verdicts tr:last-child th, .verdicts tr:last-child td { border-bottom-color: transparent; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 8px 28px;
  margin: 22px 0 0; font-size: 15px; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
code { display: block; padding: .6em .9em; background: var(--grid); border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere;
  font: .9em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
footer { margin: 56px 0 0; padding-top: 18px; border-top: 1px solid var(--edge);
  color: var(--soft); font-size: 14px; }
@media (max-width: 640px) {
  main { padding: 32px 16px 48px; } figure { padding: 18px 16px 14px; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 2px; }
  dd { margin-bottom: 10px; }
  td.left { white-space: normal; } td.left span { white-space: nowrap; }
  th, td { padding: 8px 7px; }
}
@media (max-width: 840px) {
  .wide figcaption span::after { content: " Scroll sideways to see all of it."; }
}
@media print {
  :root { --page: #fff; }
  body { font-size: 11pt; }
  main { max-width: none; padding: 0; }
  h2, h2 + p { break-after: avoid; }
  h2 { margin-top: 32px; }
  .pair { grid-template-columns: 1fr 1fr; }
  .tiles { grid-template-columns: repeat(4, 1fr); }
  .tiles b { font-size: 22px; }
  .wide svg { min-width: 0; }
  table { font-size: 11px; }
  th, td { padding: 5px 6px; white-space: normal; }
  .scroll { overflow: visible; background: none; }
  .wide figcaption span::after { content: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)css";

}  // namespace rudderfish
