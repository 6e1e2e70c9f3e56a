"""The site of Tessera: the Markdown pages of the repository and the reference of the public headers.

build.sh puts the pages into the folder that Sphinx reads. It says by TESSERA_SITE_VERSION which release it is, and by
TESSERA_SITE_XML where the XML for Breathe is.
"""

import os
import re

from docutils import nodes
from sphinx.domains.cpp import CPPDomain
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

project = "Tessera"
author = "The Tessera developers"
copyright = "the Tessera developers. Apache License 2.0"
version = release = os.environ["TESSERA_SITE_VERSION"]
here = os.path.dirname(__file__)

extensions = ["myst_parser", "breathe", "sphinx_design", "sphinx_copybutton"]

# Markdown as code hosts render it: headings have anchors.
myst_enable_extensions = ["colon_fence"]  # of the site's own front page
myst_heading_anchors = 4
myst_links_external_new_tab = False

breathe_projects = {"tessera": os.environ["TESSERA_SITE_XML"]}
breathe_default_project = "tessera"
breathe_default_members = ("members",)
breathe_show_include = False  # the pages have their own
primary_domain = "cpp"
highlight_language = "none"
# A parameter per line where a signature does not fit into one.
maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"
cpp_index_common_prefix = ["tessera::"]

html_theme = "furo"
html_title = "Tessera"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1c6b45",
        "color-brand-content": "#1c6b45",
        "color-brand-visited": "#1c6b45",
        "color-api-name": "#7a3e00",
        "color-api-pre-name": "#555555",
        "color-link-underline": "#a9cdb9",
        "color-code-background": "#f3f6f4",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7fd0a5",
        "color-brand-content": "#7fd0a5",
        "color-brand-visited": "#7fd0a5",
        "color-api-name": "#f0b35e",
        "color-api-pre-name": "#b0b0b0",
        "color-link-underline": "#3f6b55",
    },
    "navigation_with_keys": True,
    "top_of_page_buttons": [],
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_static_path = [os.path.join(here, "static")]
html_css_files = ["tessera.css", "course.css"]
html_js_files = [("course.js", {"defer": "defer"})]
html_logo = os.path.join(here, "static/logo.svg")
html_favicon = os.path.join(here, "static/favicon.svg")
html_search_scorer = os.path.join(here, "static/scorer.js")
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = "$ "  # of a session only the commands are copied
copybutton_selector = "div:not(.output) > div.highlight pre"


class SearchableCPPDomain(CPPDomain):
    """Names as one searches for them: no parameters of functions and templates, no template arguments (the search page
    would show them escaped twice), and one entry for all overloads of a page."""

    def get_objects(self):
        seen = set()
        for name, shown, kind, page, anchor, priority in super().get_objects():
            if kind in ("functionParam", "templateParam"):
                continue
            if "operator" not in shown:
                while (shorter := re.sub(r"<[^<>]*>", "", shown)) != shown:
                    shown = shorter
            if (shown, kind, page) not in seen:
                seen.add((shown, kind, page))
                yield name, shown, kind, page, anchor, priority


class LinkNames(SphinxPostTransform):
    """In the pages, the first `Gemm::launch` or `DeviceBuffer` in code type leads to the reference, and so does the first
    name of an error code to its page."""

    default_priority = 400

    def run(self):
        page = self.env.docname
        if page.startswith(("reference/", "source/")):
            return
        places = self.places()
        for literal in list(self.document.findall(nodes.literal)):
            name = literal.astext().removesuffix("()").removeprefix("tessera::")
            name = re.sub(r"<[^<>]*>$", "", name)
            outer = literal.parent
            while outer is not None and not isinstance(outer, (nodes.reference, nodes.title)):
                outer = outer.parent
            if outer is None and name in places and places[name][0] != page:
                link = make_refnode(self.app.builder, page, *places.pop(name), nodes.literal())
                literal.replace_self(link)
                link.children[0].replace_self(literal)

    def places(self):
        """Page and anchor of each type and each member, by its name without the namespace."""
        places = {page.rpartition("/")[2]: (page, "") for page in self.env.found_docs
                  if page.startswith("errors/") and not page.endswith("/index")}
        for name, shown, kind, page, anchor, _ in self.env.get_domain("cpp").get_objects():
            shown = shown.removeprefix("tessera::")
            if "::" in shown or kind in ("class", "struct", "enum", "concept"):
                places.setdefault(shown, (page, anchor))
        return places


def setup(app):
    app.add_domain(SearchableCPPDomain, override=True)
    app.add_post_transform(LinkNames)
