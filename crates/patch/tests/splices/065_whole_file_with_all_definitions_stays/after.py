def b():
    return 3


X = 1
def a():
    return 1
