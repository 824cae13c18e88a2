"""plyvel's names beside plyvel: random programs with the same answers."""

import random

import pytest

import drumlin.plyvel

plyvel = pytest.importorskip("plyvel")


class Both:
    """The same call of two objects, whose answers must be equal."""

    def __init__(self, ours, theirs):
        self._both = ours, theirs

    def __getattr__(self, name):
        def call(*args, **kwargs):
            answers = [_answer(it, name, args, kwargs) for it in self._both]
            assert answers[0] == answers[1], (name, args, kwargs)
            return answers[0]

        return call

    def make(self, name, *args, **kwargs):
        return Both(*(getattr(it, name)(*args, **kwargs) for it in self._both))


def _answer(it, name, args, kwargs):
    try:
        return getattr(it, name)(*args, **kwargs)
    except StopIteration:
        return "the end"
    except (ValueError, TypeError, RuntimeError) as error:
        return type(error).__name__


def _key(rng):
    return bytes(rng.choices(b"abc\xff", k=rng.randrange(1, 4)))


def _iterate(rng, reads, may_reverse):
    # Backwards only over all: with a lower bound, plyvel leaves out an entry that is alone and stands on it, and after a
    # seek to it gives the entry before it. The next test has those.
    reverse = may_reverse and rng.random() < 0.3
    kwargs = {
        "reverse": reverse,
        "include_value": rng.random() < 0.5,
        "include_key": rng.random() < 0.8,
    }
    if reverse:
        pass
    elif rng.random() < 0.2:
        kwargs["prefix"] = _key(rng)
    else:
        if rng.random() < 0.5:
            kwargs |= {"start": _key(rng), "include_start": rng.random() < 0.5}
        if rng.random() < 0.5:
            kwargs |= {"stop": _key(rng), "include_stop": rng.random() < 0.5}
    iterator = reads.make("iterator", **kwargs)
    for _ in range(rng.randrange(12)):
        iterator.__next__()
    # plyvel's seek stays between start and stop, and gives them also where they are left out. And its iterator loses its
    # place where it turns at an end of a range, so none turns here.
    has_plain_ends = kwargs.get("include_start", True) and not kwargs.get("include_stop", False)
    match rng.randrange(4):
        case 0 if has_plain_ends:
            iterator.seek(_key(rng))
        case 1:
            iterator.seek_to_start()
        case 2:
            iterator.seek_to_stop()
    for _ in range(rng.randrange(12)):
        iterator.__next__()


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_answer_as_plyvel_does(tmp_path, seed):
    rng = random.Random(seed)
    ours = drumlin.plyvel.DB(str(tmp_path / "ours"), create_if_missing=True)
    theirs = plyvel.DB(str(tmp_path / "theirs"), create_if_missing=True)
    db = Both(ours, theirs)
    for _ in range(1_500):
        is_whole = rng.random() < 0.7
        reads = db if is_whole else db.make("prefixed_db", _key(rng))
        match rng.randrange(7):
            case 0 | 1:
                reads.put(_key(rng), rng.randbytes(5))
            case 2:
                reads.delete(_key(rng))
            case 3:
                reads.get(_key(rng), b"none")
            case 4:
                batch = reads.make("write_batch", transaction=rng.random() < 0.5)
                for _ in range(rng.randrange(6)):
                    batch.put(_key(rng), rng.randbytes(3))
                    batch.delete(_key(rng))
                batch.write()
            case 5:
                _iterate(rng, reads, is_whole)
            case 6:
                _iterate(rng, reads.make("snapshot"), is_whole)
    assert list(ours) == list(theirs)
    ours.close()
    theirs.close()
    # Each reads the other's directory.
    swapped = [
        drumlin.plyvel.DB(str(tmp_path / "theirs")),
        plyvel.DB(str(tmp_path / "ours")),
    ]
    assert list(swapped[0]) == list(swapped[1])


def test_moves_of_an_iterator_are_those_of_a_place_in_a_list(tmp_path):
    """Also where it turns at the ends of a range."""
    rng = random.Random(3)
    db = drumlin.plyvel.DB(str(tmp_path / "db"), create_if_missing=True)
    keys = sorted({_key(rng) for _ in range(30)})
    for key in keys:
        db.put(key, key)
    for _ in range(400):
        start, stop, reverse = _key(rng), _key(rng), rng.random() < 0.5
        inside = [key for key in keys if start <= key < stop]
        iterator = db.iterator(start=start, stop=stop, reverse=reverse, include_value=False)
        place = len(inside) if reverse else 0
        for _ in range(25):
            move = rng.choice(["next", "next", "next", "prev", "seek", "start", "stop"])
            if move == "seek":
                target = _key(rng)
                iterator.seek(target)
                place = sum(key < target for key in inside)
            elif move == "start":
                iterator.seek_to_start()
                place = 0
            elif move == "stop":
                iterator.seek_to_stop()
                place = len(inside)
            else:
                forth = (move == "next") != reverse
                expected = None
                if forth and place < len(inside):
                    expected, place = inside[place], place + 1
                elif not forth and place > 0:
                    expected, place = inside[place - 1], place - 1
                step = iterator.prev if move == "prev" else iterator.__next__
                if expected is None:
                    with pytest.raises(StopIteration):
                        step()
                else:
                    assert step() == expected
