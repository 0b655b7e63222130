from stepline.gaps import absent_s, said

GAPS = [(float(at), at + 0.5, "damaged") for at in range(7)]


def test_gaps_are_said_in_a_line() -> None:
    assert said([]) == ""
    assert said([(2.0, 3.4, "damaged"), (7.0, 9.25, "truncated")]) == (
        "2.000 to 3.400 s: damaged; 7.000 to 9.250 s: truncated"
    )
    assert said(GAPS).endswith("4.000 to 4.500 s: damaged; and 2 more")


def test_what_is_absent_is_counted_in_seconds() -> None:
    assert (absent_s([]), absent_s(GAPS)) == (0, 3.5)
