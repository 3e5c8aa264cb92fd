/** The colours of the SVG charts (headrace.report.palette; a test compares them). */
export const PALETTE = ["#4477aa", "#ddaa33", "#228833", "#cc6677", "#66ccee", "#882255", "#999933", "#332288"];
