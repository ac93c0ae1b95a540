//! How the pages look.

pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--accent:#2457c5}\
*{box-sizing:border-box}\
body{margin:0;font:16px/1.5 system-ui,sans-serif}\
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 3rem}\
h1{font-size:1.6rem;margin:.5rem 0 1rem;overflow-wrap:anywhere}\
h2{font-size:1.1rem;margin:1.5rem 0 .5rem}\
form{display:grid;gap:.75rem;max-width:34rem;padding:1rem;border:1px solid var(--line);border-radius:.5rem}\
label{display:grid;gap:.2rem;font-weight:600}\
label.choice{display:inline-flex;gap:.4rem;margin-right:1.5rem;font-weight:400}\
fieldset{border:0;margin:0;padding:0}legend{font-weight:600;padding:0}\
input,textarea,button{font:inherit;font-weight:400}\
input:not([type=radio]),textarea{width:100%;padding:.4rem .5rem;border:1px solid var(--line);border-radius:.3rem}\
button{justify-self:start;padding:.45rem 1.1rem;border:0;border-radius:.3rem;background:var(--accent);color:#fff}\
details{margin:.75rem 0}summary{cursor:pointer;margin-bottom:.5rem}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.4rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}\
td:first-child{min-width:9rem;overflow-wrap:anywhere}.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
.time{opacity:.7;white-space:nowrap;font-variant-numeric:tabular-nums}\
.none{opacity:.7}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.3rem 1.2rem;margin:0}\
dt{font-weight:600}dd{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}\
ol{padding-left:2rem}li{overflow-wrap:anywhere}\
.badge{display:inline-block;padding:.05rem .6rem;border-radius:1rem;font-size:.85rem;font-weight:600;color:#fff;white-space:nowrap;vertical-align:middle}\
.open{background:#2457c5}.late{background:#9a5b00}.good{background:#1c7a3d}.bad{background:#b3261e}.off{background:#666}\
.notice{padding:.7rem 1rem;border-left:.3rem solid #b3261e;background:var(--soft)}";
