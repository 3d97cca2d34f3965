def b():
    return 2


def d():
    return 1


def c():
    return d()
