"""Pages for people: what a run did, in one self-contained HTML file."""
