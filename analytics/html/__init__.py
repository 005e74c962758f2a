"""The HTML report and a run's page: one file each, that opens from a disk and asks no network for anything.

`page` puts sections together, `tables` and `charts` say what stands in them, `timelines` the runs they lead to.
`report.css` and `report.js` are the same for every page. Data goes in as JSON and comes out as text nodes, never as
markup; the page's own policy allows nothing but what is in the file.
"""
