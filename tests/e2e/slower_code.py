"""Plain Python code that became slower in many ways, and tests that call it."""

# For each kind of slow-down: the module before and after it, and the function that does more.
SLOWER = {
    "loop_for_builtin": (
        "def work(n=200):\n    return sum(range(n))\n",
        "def work(n=200):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n",
        "work",
    ),
    "lost_cache": (
        "import functools\n@functools.cache\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "def work():\n    fib.cache_clear()\n    return fib(14)\n",
        "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\ndef work():\n    return fib(14)\n",
        "fib",
    ),
    "quadratic_copy": (
        "def work(n=60):\n    kept = []\n    for i in range(n):\n        kept.append(i)\n    return kept\n",
        "def work(n=60):\n    kept = []\n    for i in range(n):\n        kept = [k for k in kept] + [i]\n"
        "    return kept\n",
        "work",
    ),
    "eager_message": (
        "LOUD = False\ndef describe(item):\n    return ', '.join(str(part) for part in item)\n"
        "def work(n=50):\n    for i in range(n):\n        if LOUD:\n            print(describe((i, i)))\n",
        "LOUD = False\ndef describe(item):\n    return ', '.join(str(part) for part in item)\n"
        "def work(n=50):\n    for i in range(n):\n        message = describe((i, i))\n"
        "        if LOUD:\n            print(message)\n",
        "describe",
    ),
    "nested_search": (
        "def work(n=40):\n    known = {i: i for i in range(n)}\n    return [known[i] for i in range(n)]\n",
        "def find(pairs, key):\n    for name, value in pairs:\n        if name == key:\n            return value\n"
        "def work(n=40):\n    known = [(i, i) for i in range(n)]\n    return [find(known, i) for i in range(n)]\n",
        "find",
    ),
    "recomputed_in_loop": (
        "def limit():\n    return max(i * 7 % 11 for i in range(30))\n"
        "def work(n=30):\n    top = limit()\n    return [i for i in range(n) if i < top]\n",
        "def limit():\n    return max(i * 7 % 11 for i in range(30))\n"
        "def work(n=30):\n    return [i for i in range(n) if i < limit()]\n",
        "limit.<locals>.<genexpr>",
    ),
    "property_in_loop": (
        "class Box:\n    def __init__(self):\n        self.size = 3\n"
        "def work(n=200):\n    box = Box()\n    return sum(box.size for _ in range(n))\n",
        "class Box:\n    def __init__(self):\n        self._size = 3\n    @property\n    def size(self):\n"
        "        return self._size\n"
        "def work(n=200):\n    box = Box()\n    return sum(box.size for _ in range(n))\n",
        "Box.size",
    ),
    "early_exit_lost": (
        "def has_even(items):\n    for item in items:\n        if item % 2 == 0:\n            return True\n"
        "    return False\ndef work():\n    return has_even(range(300))\n",
        "def has_even(items):\n    found = False\n    for item in items:\n        if item % 2 == 0:\n"
        "            found = True\n    return found\ndef work():\n    return has_even(range(300))\n",
        "has_even",
    ),
    "twice_over_input": (
        "def work(n=150):\n    low = high = 0\n    for i in range(n):\n        low = min(low, i)\n"
        "        high = max(high, i)\n    return low, high\n",
        "def work(n=150):\n    low = high = 0\n    for i in range(n):\n        low = min(low, i)\n"
        "    for i in range(n):\n        high = max(high, i)\n    return low, high\n",
        "work",
    ),
    "recursion_for_loop": (
        "def depth(n):\n    total = 0\n    while n:\n        n -= 1\n        total += 1\n    return total\n"
        "def work():\n    return depth(150)\n",
        "def depth(n):\n    return 0 if n == 0 else 1 + sum([depth(n - 1)]) + abs(0) + abs(0) + abs(0)\n"
        "def work():\n    return depth(150)\n",
        "depth",
    ),
    "deep_copy": (
        "import copy\ndef work():\n    return copy.copy([{'a': i} for i in range(20)])\n",
        "import copy\ndef work():\n    return copy.deepcopy([{'a': i} for i in range(20)])\n",
        "deepcopy",
    ),
    "two_percent": (
        "def work(n=2000):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n",
        "def work(n=2040):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n",
        "work",
    ),
    "list_for_set": (
        "def work(n=50):\n    known = set(range(n))\n    return [i in known for i in range(n)]\n",
        "def work(n=50):\n    known = list(range(n))\n    return [i in known for i in range(n)]\n",
        "",  # a loop in C, which runs no Python instruction
    ),
    "backtracking": (
        "import re\ndef work():\n    return re.compile('a+b').search('a' * 15)\n",
        "import re\ndef work():\n    return re.compile('(a|a)+b').search('a' * 15)\n",
        "",  # as above; the pattern is compiled before
    ),
}

TESTS = """\
    import importlib
    import pytest

    @pytest.mark.profile
    @pytest.mark.parametrize("kind", {kinds})
    def test_kind(kind):
        importlib.import_module(kind).work()
"""
