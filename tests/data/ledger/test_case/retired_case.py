def test_gone(x):
    """!
    scenario: retired
    query: Never again.
    """
