"""A file in parts reads as the whole file does."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgap.team.campaign.store import joined

moves = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(-1, 12)),
        st.tuples(st.just("seek"), st.integers(0, 20), st.just(io.SEEK_SET)),
        st.tuples(st.just("seek"), st.integers(0, 5), st.just(io.SEEK_CUR)),
        st.tuples(st.just("seek"), st.integers(-2, 3), st.just(io.SEEK_END)),
    )
)


@given(st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=6), moves)
def test_parts_read_as_one(parts, moves):
    whole, file = io.BytesIO(b"".join(parts)), joined(parts)
    whole.seek(0, io.SEEK_END)
    file.seek(0, io.SEEK_END)
    for name, *arguments in moves:
        if (
            name == "seek"
            and arguments[1] == io.SEEK_END
            and -arguments[0] > whole.getbuffer().nbytes
        ):
            continue
        assert getattr(file, name)(*arguments) == getattr(whole, name)(*arguments)
        assert file.tell() == whole.tell()


def test_there_is_nothing_before_the_beginning():
    with pytest.raises(ValueError, match="place -1"):
        joined([b"x"]).seek(-1)
