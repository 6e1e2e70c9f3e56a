#pragma once

/// The style sheet of HTML reports and of the charts in them: light or dark, as the reader has it.

#include <string_view>

namespace tessera::bench {

inline constexpr std::string_view html_style = R"(
:root { color-scheme: light dark; --paper: #fbfbf9; --card: #ffffff; --ink: #1c2126; --soft: #66707a; --rule: #dfe2e4;
  --good: #16855b; --bad: #c2571a; --ours0: #0a6cf0; --ours1: #8a35d6; --ours2: #0d9488; --ours3: #d0307f;
  --peer0: #9aa3ab; --peer1: #c08a1e; --peer2: #7c8a5a; --peer3: #a6705d; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --card: #1c2024; --ink: #e7eaec; --soft: #98a2ab;
  --rule: #32383d; --good: #4cc38a; --bad: #ef8a4b; --ours0: #5aa5ff; --ours1: #bd83f7; --ours2: #3fc8b8;
  --ours3: #f06bac; --peer0: #7c868f; --peer1: #d9a63c; --peer2: #9aaa72; --peer3: #c48c78; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 28px; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 19px; margin: 44px 0 10px; }
p { margin: 0 0 12px; max-width: 75ch; }
.soft, figcaption { color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: 14px; margin: 24px 0 0; }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 14px 18px; flex: 1 1 200px; }
.card b { display: block; font-size: 32px; font-variant-numeric: tabular-nums; line-height: 1.2; }
figure { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; margin: 0; padding: 16px;
  overflow-x: auto; }
figcaption { margin-top: 8px; font-size: 13px; }
svg { display: block; width: 100%; min-width: 680px; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } .start { text-anchor: start; } .middle { text-anchor: middle; } .end { text-anchor: end; }
.mono { font-family: ui-monospace, monospace; font-size: 11px; } .strong { font-weight: 600; }
svg .good { fill: var(--good); } svg .bad { fill: var(--bad); } .good { color: var(--good); } .bad { color: var(--bad); }
.grid { stroke: var(--rule); stroke-width: 1; } .axis { stroke: var(--soft); stroke-width: 1.2; }
.whisker { stroke: var(--ink); stroke-width: 1.6; } .faster { fill: var(--good); } .slower { fill: var(--bad); }
.roof { fill: none; stroke: var(--soft); stroke-width: 2; stroke-dasharray: 6 4; } .curve { fill: none; stroke-width: 2; }
.dot { stroke: var(--card); stroke-width: 1.2; }
.dot.ours0 { fill: var(--ours0); } .dot.ours1 { fill: var(--ours1); } .dot.ours2 { fill: var(--ours2); }
.dot.ours3 { fill: var(--ours3); } .dot.peer0 { fill: var(--peer0); } .dot.peer1 { fill: var(--peer1); }
.dot.peer2 { fill: var(--peer2); } .dot.peer3 { fill: var(--peer3); }
.curve.ours0 { stroke: var(--ours0); } .curve.ours1 { stroke: var(--ours1); } .curve.ours2 { stroke: var(--ours2); }
.curve.ours3 { stroke: var(--ours3); } .curve.peer0 { stroke: var(--peer0); } .curve.peer1 { stroke: var(--peer1); }
.curve.peer2 { stroke: var(--peer2); } .curve.peer3 { stroke: var(--peer3); }
.heat0, .heat1, .heat2, .heat3, .heat4, .heat5, .heat6, .heat7, .heat8, .heat9 { fill: var(--ours0); stroke: var(--card); }
.heat0 { fill-opacity: 0.04; } .heat1 { fill-opacity: 0.1; } .heat2 { fill-opacity: 0.17; } .heat3 { fill-opacity: 0.24; }
.heat4 { fill-opacity: 0.31; } .heat5 { fill-opacity: 0.38; } .heat6 { fill-opacity: 0.46; } .heat7 { fill-opacity: 0.54; }
.heat8 { fill-opacity: 0.63; } .heat9 { fill-opacity: 0.73; } .none { fill: none; stroke: var(--rule); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, td.left, th.left { text-align: left; }
tr.first td { border-top: 2px solid var(--rule); } pre { white-space: pre-wrap; font-size: 12px; color: var(--soft); }
)";

}  // namespace tessera::bench
