class Search:
    def __init__(self, agent, source):
        pass
    def fill(self, snapshot):
        pass
