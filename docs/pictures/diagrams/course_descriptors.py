"""Chapter 5 of the course: two layouts of a tile, and a descriptor's offsets."""

from svg import BLUE, GREEN, MUTED, ORANGE, Picture, drawing


@drawing
def course_descriptors() -> Picture:
    p = Picture(
        "A K-major and an N-major tile in shared memory",
        "On the left a K-major tile: groups of eight rows, each a line of 128 bytes along K, 1024 bytes from group to group. On the "
        "right an N-major tile of 128 columns: two blocks of 64 columns, each of eight groups of eight lines, a line for each k; "
        "1024 bytes from group to group, 8192 bytes from block to block.",
        height=290,
    )
    p.text(40, 28, "K-major: a line is a row of A", bold=True)
    for i in range(3):
        y = 50 + 62 * i
        p.rect(60, y, 190, 56, BLUE.tint, BLUE.dark)
        p.text(70, y + 22, f"rows {8 * i} to {8 * i + 7}", color=BLUE.dark)
        p.text(70, y + 41, "8 lines of 128 bytes: 64 k", size=11)
    p.text(150, 250, "... 16 groups for 128 rows", size=11, color=MUTED, anchor="middle")
    p.bracket(50, 112, 256, "stride\n1024 bytes", side="right")
    p.text(380, 28, "N-major: a line is one k of B", bold=True)
    for block, hue in ((0, GREEN), (1, ORANGE)):
        x = 380 + 120 * block
        for i in range(3):
            y = 50 + 62 * i
            p.rect(x, y, 112, 56, hue.tint, hue.dark)
            p.text(x + 8, y + 22, f"k {8 * i} to {8 * i + 7}", color=hue.dark)
            p.text(x + 8, y + 41, f"n {64 * block} to {64 * block + 63}", size=11)
        p.text(x + 56, 250, "... 8 groups", size=11, color=MUTED, anchor="middle")
    p.bracket(50, 112, 618, "stride\n1024 bytes", side="right")
    p.bracket(380, 500, 262, "leading offset: 8192 bytes to the next block", side="bottom")
    return p
